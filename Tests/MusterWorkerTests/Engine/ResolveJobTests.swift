import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// What a resolver is asked, and which of its answers count (range contract, row 21).
@Suite struct ResolveJobTests {
    private func lease(_ origin: ScriptedOrigin, headers: [String: Secret]? = nil) -> LeaseDocument {
        var lease = LeaseDocument.first("")
        lease.kind = .resolve
        lease.source = nil
        lease.resolver = Resolver(url: origin.url("/resolve"), headers: headers)
        lease.question = ResolverQuestion(
            group: "nightly",
            key: "a/b",
            url: "https://files.example/b?old=1",
            source: 3,
            status: 403
        )
        return lease
    }

    @Test func questionIsAskedAndTheAnswerReported() async throws {
        try await withBench { bench, origin in
            origin.resolve(at: "/resolve", .fixed(url: "https://files.example/b?new=1", headers: ["X-Fresh": "1"]))
            let ending = await bench.run(lease(origin, headers: ["Authorization": Secret("value:Bearer x")]))
            #expect(
                ending.resolved
                    == ResolverAnswer(url: "https://files.example/b?new=1", headers: ["X-Fresh": "1"])
            )
            let request = try #require(origin.requests.first)
            #expect(request.method == "POST")
            #expect(request.header("Authorization") == "Bearer x")
            #expect(request.header("Content-Type") == "application/json")
            let question = try JSONDecoder().decode(ResolverQuestion.self, from: Data(request.body.utf8))
            #expect(question == lease(origin).question)
        }
    }

    @Test func refusalIsReportedWithItsStatusAndWish() async throws {
        try await withBench { bench, origin in
            origin.resolve(at: "/resolve")
            origin.misbehave("/resolve", .status(503, retryAfter: "12"), when: .first(1))
            origin.misbehave("/resolve", .headers([ScriptedOrigin.Header("X-Request-Id", "q-1")]), when: .first(1))
            let failure = await bench.run(lease(origin)).failure
            #expect(failure?.kind == .httpStatus(503))
            #expect(failure?.status == 503)
            #expect(failure?.retryAfter == 12)
            #expect(failure?.requestID == "q-1")
            #expect(failure?.address == "127.0.0.1")
            #expect(failure?.source == 3)
            #expect(await bench.run(lease(origin)).resolved != nil)
        }
    }

    @Test(arguments: [
        "", "[]", "{\"uri\": \"https://a/\"}", "{\"url\": \"file:///etc/passwd\"}", "{\"url\": \"https://u:p@a/\"}",
        "{\"url\": \"https://a/\", \"headers\": {\"A\": \"b\\r\\nC: d\"}}",
        "{\"url\": \"https://a/\", \"headers\": {\"Range\": \"bytes=0-1\"}}",
    ])
    func answerThatCannotBeUsedIsAFailure(_ body: String) async throws {
        try await withBench { bench, origin in
            origin.resolve(at: "/resolve", .body(body))
            let failure = await bench.run(lease(origin)).failure
            #expect(failure?.kind == .authentication)
            #expect(failure?.status == 200)
        }
    }

    @Test func endlessAnswerIsCut() async throws {
        try await withBench { bench, origin in
            let padding = String(repeating: " ", count: Int(ResolveJob.answerLimitBytes))
            origin.resolve(at: "/resolve", .body(padding + "{\"url\": \"https://a/\"}"))
            #expect(await bench.run(lease(origin)).failure?.detail.contains("over 65536 bytes") == true)
        }
    }

    @Test func redirectIsNotFollowed() async throws {
        try await withBench { bench, origin in
            origin.resolve(at: "/resolve")
            origin.resolve(at: "/elsewhere")
            origin.misbehave("/resolve", .redirect(to: origin.url("/elsewhere"), status: 307))
            #expect(await bench.run(lease(origin)).failure?.kind == .httpStatus(307))
            #expect(origin.questions(at: "/elsewhere").isEmpty)
        }
    }

    @Test func resolverIsHeldToTheGuard() async throws {
        try await withBench { bench, origin in
            origin.resolve(at: "/resolve")
            bench.context.sources.adopt(AddressGuard(refusesPrivate: true))
            #expect(await bench.run(lease(origin)).failure?.kind == .refusedAddress)
            #expect(origin.connectionCount == 0)
        }
    }

    @Test func unreadableSecretMakesNoRequest() async throws {
        try await withBench { bench, origin in
            origin.resolve(at: "/resolve")
            let failure = await bench.run(lease(origin, headers: ["A": Secret("env:MUSTER_NONE")])).failure
            #expect(failure?.kind == .authentication)
            #expect(failure?.detail.hasPrefix("env:MUSTER_NONE ") == true)
            #expect(origin.connectionCount == 0)
        }
    }

    @Test func abortedQuestionSaysNothing() async throws {
        try await withBench { bench, origin in
            origin.resolve(at: "/resolve")
            origin.misbehave("/resolve", .hangBeforeHeaders)
            let control = LeaseControl()
            async let running = bench.run(lease(origin), control: control)
            try await origin.waitForRequests("/resolve", count: 1)
            control.ask(.abort)
            #expect(await running.isAborted)
        }
    }

    @Test func leaseWithoutAResolverFails() async throws {
        try await withBench { bench, origin in
            var lease = lease(origin)
            lease.resolver = nil
            #expect(await bench.run(lease).failure?.kind == .authentication)
        }
    }
}
