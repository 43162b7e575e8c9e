import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterWorker

/// What the options of a lease do to its requests, over real sockets (range contract, rows 33, 36, 38, 39).
@Suite struct FetchJobOptionsTests {
    private let content = ScriptedOrigin.File(.seeded(seed: 3, size: 1_000))

    private func lease(_ url: String, _ change: (inout FetchOptions) -> Void) -> LeaseDocument {
        var options = FetchOptions()
        change(&options)
        var lease = LeaseDocument.first(url)
        lease.options = options
        return lease
    }

    @Test func fieldsCookiesAndCredentialsReachTheOrigin() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", content)
            origin.misbehave("/f", .requires(.basic(user: "me", password: "pw")))
            origin.misbehave("/f", .requires(.header(ScriptedOrigin.Header("X-Key", "task"))))
            origin.misbehave("/f", .requires(.cookie(name: "c", value: "1")))
            var lease = lease(origin.url("/f")) { options in
                options.headers = ["X-Key": Secret("group")]
                options.cookies = ["c": Secret("1")]
                options.credentials = FetchOptions.Credentials(user: "me", password: Secret("pw"))
            }
            lease.source?.headers = ["x-key": "task"]
            #expect(await bench.run(lease).finished?.size == 1_000)
        }
    }

    @Test func nothingOfTheCallersFollowsARedirectToAnotherOrigin() async throws {
        let elsewhere = try await ScriptedOrigin.start()
        try await withBench { bench, origin in
            elsewhere.serve("/f", content)
            origin.misbehave("/r", .redirect(to: elsewhere.url("/f"), status: 302))
            for (task, trusted) in [(Int64(1), false), (2, true)] {
                var lease = lease(origin.url("/r")) { options in
                    options.headers = ["X-Api-Key": Secret("k3y"), "Private-Token": Secret("t0ken")]
                    options.cookies = ["c": Secret("1")]
                    options.credentials = FetchOptions.Credentials(user: "me", password: Secret("pw"))
                    if trusted { options.locationTrusted = true }
                }
                lease.source?.headers = ["X-Own": "task"]
                lease.task = TaskID(task)
                lease.path = "out/\(task)"
                #expect(await bench.run(lease).finished?.size == 1_000)
                for field in ["X-Api-Key", "Private-Token", "X-Own", "Cookie", "Authorization"] {
                    #expect(origin.requests.last?.header(field) != nil, "\(field)")
                    #expect((elsewhere.requests.last?.header(field) != nil) == trusted, "\(field)")
                }
                #expect(elsewhere.requests.last?.header("Accept-Encoding") == "identity")
                #expect(elsewhere.requests.last?.range == "bytes=0-8388607")
            }
        }
        await elsewhere.stop()
    }

    @Test func secretThatTheOperatorDidNotGrantIsNotSent() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", content)
            try bench.put("token", Array("Bearer abc\n".utf8))
            let path = bench.directory.path.appending("token").string
            let lease = lease(origin.url("/f")) { $0.headers = ["Authorization": Secret("file:\(path)")] }
            let failure = await bench.run(lease).failure
            #expect(failure?.kind == .authentication)
            #expect(failure?.detail == "file:\(path) is no file that this worker gives to the source")
            #expect(failure?.source == 0)
            #expect(failure?.status == nil)
            #expect(origin.requests.isEmpty)
        }
    }

    @Test func operatorGrantsADirectoryOfSecrets() async throws {
        let secrets = try TemporaryDirectory()
        let path = secrets.path.appending("token").string
        try Data("Bearer abc".utf8).write(to: URL(filePath: path))
        try await withBench(configure: { $0.secrets.directories[secrets.path.string] = [.anyone] }) { bench, origin in
            origin.serve("/f", content)
            origin.misbehave("/f", .requires(.header(ScriptedOrigin.Header("Authorization", "Bearer abc"))))
            bench.context.sources.adopt(
                AddressGuard(refusesPrivate: true, allowed: [try #require(AddressRange("127.0.0.1"))])
            )
            let lease = lease(origin.url("/f")) { $0.headers = ["Authorization": Secret("file:\(path)")] }
            #expect(await bench.run(lease).finished?.size == 1_000)
        }
    }

    @Test func guardOfTheSessionHoldsForOriginsAndRedirects() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", content)
            bench.context.sources.adopt(AddressGuard(refusesPrivate: true))
            let failure = await bench.run(.first(origin.url("/f"))).failure
            #expect(failure?.kind == .refusedAddress)
            #expect(origin.connectionCount == 0)
            origin.misbehave("/r", .redirect(to: "http://127.0.0.2:\(origin.port)/f", status: 302))
            bench.context.sources.adopt(
                AddressGuard(refusesPrivate: true, allowed: [try #require(AddressRange("127.0.0.1"))])
            )
            #expect(await bench.run(.first(origin.url("/r"), task: 2)).failure?.kind == .refusedAddress)
            #expect(await bench.run(.first(origin.url("/f"), task: 3)).finished?.size == 1_000)
        }
    }

    @Test func proxyIsUsedAndNotAskedForPrivateHosts() async throws {
        let proxy = try await ScriptedProxy.start(routes: [:])
        try await withBench { bench, origin in
            origin.serve("/f", content)
            proxy.route("files.example", to: origin.port)
            let through = { (url: String) in lease(url) { $0.proxy = Secret(proxy.url) } }
            bench.context.sources.adopt(
                AddressGuard(refusesPrivate: true, allowed: [try #require(AddressRange("127.0.0.1"))])
            )
            #expect(await bench.run(through("http://files.example/f")).finished?.size == 1_000)
            #expect(proxy.requests.map(\.target) == ["http://files.example/f"])

            let failure = await bench.run(through("http://10.1.2.3/f")).failure
            #expect(failure?.kind == .refusedAddress)
            #expect(proxy.requests.count == 1)

            // Nor is it asked for private hosts that a redirect leads to.
            for (number, host) in ["10.1.2.3", "db.internal"].enumerated() {
                proxy.route(host, to: origin.port)
                origin.misbehave("/r\(number)", .redirect(to: "http://\(host)/f", status: 302))
                var redirected = through("http://files.example/r\(number)")
                redirected.path = "redirected"
                #expect(await bench.run(redirected).failure?.kind == .refusedAddress)
                #expect(!bench.exists("redirected"))
                #expect(!proxy.requests.contains { $0.target.contains(host) })
            }
            proxy.route("cdn.example", to: origin.port)
            origin.misbehave("/public", .redirect(to: "http://cdn.example/f", status: 302))
            var redirected = through("http://files.example/public")
            redirected.task = TaskID(2)
            redirected.path = "public"
            #expect(await bench.run(redirected).finished?.size == 1_000)

            // The proxy itself is held to the guard too.
            bench.context.sources.adopt(AddressGuard(refusesPrivate: true))
            #expect(await bench.run(through("http://files.example/f")).failure?.kind == .refusedAddress)
        }
        await proxy.stop()
    }

    @Test func authoritiesOfTheOptionsAreTrusted() async throws {
        try await withBench(
            .tls,
            configure: {
                $0.caFile = nil
                $0.secrets.directories["/"] = [.anyone]
            }
        ) { bench, origin in
            origin.serve("/f", content)
            #expect(await bench.run(.first(origin.url("/f"))).failure?.kind == .tls)
            let caFile = try #require(origin.caFile).string
            let lease = lease(origin.url("/f")) { $0.caFile = caFile }
            #expect(await bench.run(lease).finished?.size == 1_000)
        }
    }

    @Test func silentOriginIsGivenUpAfterTheTimeOfTheOptions() async throws {
        try await withBench { bench, origin in
            origin.misbehave("/f", .hangBeforeHeaders)
            let lease = lease(origin.url("/f")) { $0.firstByteTimeoutSeconds = 1 }
            #expect(await bench.run(lease).failure?.kind == .timeout)
        }
    }

    @Test func failureShowsNothingThatWasGivenInConfidence() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", content)
            origin.misbehave("/f", .contentRange("bytes secret-key"))
            origin.misbehave("/f", .status(418, retryAfter: nil), when: .init(hasRange: false))
            let repeated = lease(origin.url("/f")) { $0.headers = ["X-Key": Secret("secret-key")] }
            let told = try #require(await bench.run(repeated).failure?.detail)
            #expect(told.contains("206 with Content-Range \"bytes •••\"") && !told.contains("secret"))
            let unreadable = lease(origin.url("/f")) { $0.proxy = Secret("http://me:hunter22@proxy.example:port") }
            let failure = try #require(await bench.run(unreadable).failure)
            #expect(!failure.detail.contains("hunter22"))
        }
    }
}
