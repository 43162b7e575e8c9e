import MusterAPI
import MusterTestSupport
import Testing

@testable import MusterWorker

@Suite struct CurlTransportTests {
    private func request(_ url: String) -> APIRequest {
        APIRequest(method: "GET", url: url, headers: [("X-One", "1")], body: .none, timeout: .seconds(300))
    }

    private func withTransport(_ body: (CurlTransport, ScriptedOrigin) async throws -> Void) async throws {
        let transport = try CurlTransport()
        let origin = try await ScriptedOrigin.start()
        do {
            try await body(transport, origin)
        } catch {
            await transport.shutdown()
            await origin.stop()
            throw error
        }
        await transport.shutdown()
        await origin.stop()
    }

    @Test func answersComeWithStatusAndBody() async throws {
        try await withTransport { transport, origin in
            origin.serve("/a", ScriptedOrigin.File(.bytes(Array("{}".utf8))))
            let answer = try await transport.send(request(origin.url("/a")))
            #expect(answer.status == 200)
            #expect(answer.body == Array("{}".utf8))
            #expect(origin.requests.first?.header("X-One") == "1")
            #expect(try await transport.send(request(origin.url("/none"))).status == 404)
        }
    }

    @Test func refusedConnectionIsUnreachable() async throws {
        try await withTransport { transport, _ in
            let port = try await FreePort.find()
            await #expect(throws: Unreachable.self) {
                try await transport.send(request("http://127.0.0.1:\(port)/"))
            }
        }
    }

    @Test func silenceIsToldFromAServerThatIsAway() async throws {
        try await withTransport { transport, origin in
            origin.serve("/a", ScriptedOrigin.File(.seeded(seed: 1, size: 10)))
            origin.misbehave("/a", .hangBeforeHeaders)
            var asked = request(origin.url("/a"))
            asked.timeout = .milliseconds(200)
            let silence = await #expect(throws: Unreachable.self) { try await transport.send(asked) }
            #expect(silence?.isTimeout == true)
            asked.url = "http://127.0.0.1:\(try await FreePort.find())/"
            let absence = await #expect(throws: Unreachable.self) { try await transport.send(asked) }
            #expect(absence?.isTimeout == false && absence?.isRefused == true && silence?.isRefused == false)
        }
    }

    @Test func cutAnswerIsUnreachable() async throws {
        try await withTransport { transport, origin in
            origin.serve("/a", ScriptedOrigin.File(.seeded(seed: 1, size: 1_000)))
            origin.misbehave("/a", .truncated(afterBytes: 10))
            await #expect(throws: Unreachable.self) { try await transport.send(request(origin.url("/a"))) }
        }
    }

    /// libcurl by itself repeats a request that gets no answer on a used connection. The caller would not know that the change may be made already.
    @Test func requestThatChangesSomethingIsSentOnce() async throws {
        try await withTransport { transport, origin in
            origin.serve("/warm", ScriptedOrigin.File(.bytes(Array("{}".utf8))))
            origin.serve("/a", ScriptedOrigin.File(.bytes(Array("{}".utf8))))
            origin.misbehave("/a", .closeBeforeHeaders)
            for manner in [APIRequest.Manner.change, .session] {
                _ = try await transport.send(request(origin.url("/warm")))
                var asked = request(origin.url("/a"))
                asked.manner = manner
                await #expect(throws: Unreachable.self) { try await transport.send(asked) }
                let sent = origin.requests.filter { $0.path == "/a" }.count
                #expect(manner == .change ? sent == 1 : sent > 2, "\(manner): \(sent)")
            }
        }
    }

    @Test func oversizedAnswerIsRefused() async throws {
        try await withTransport { transport, origin in
            origin.serve("/a", ScriptedOrigin.File(.seeded(seed: 1, size: 65 << 20)))
            await #expect(throws: Unreachable.self) { try await transport.send(request(origin.url("/a"))) }
        }
    }

    @Test func cancelledCallThrowsCancellation() async throws {
        try await withTransport { transport, origin in
            origin.serve("/a", ScriptedOrigin.File(.seeded(seed: 1, size: 10)))
            origin.misbehave("/a", .hangBeforeHeaders)
            let send = transport.send
            let asked = request(origin.url("/a"))
            await withTaskGroup(of: Bool.self) { group in
                group.addTask {
                    do {
                        _ = try await send(asked)
                        return false
                    } catch {
                        return error is CancellationError
                    }
                }
                try? await origin.waitForRequests("/a", count: 1)
                group.cancelAll()
                #expect(await group.next() == true)
            }
        }
    }

    @Test func shutTransportIsUnreachable() async throws {
        let transport = try CurlTransport()
        await transport.shutdown()
        await #expect(throws: Unreachable.self) { try await transport.send(request("http://127.0.0.1:1/")) }
    }
}
