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

    @Test func whatTheOperatorDidNotGrantIsNotSent() async throws {
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

            // Where a redirect led the proxy, nothing is taken from.
            proxy.route("10.1.2.3", to: origin.port)
            origin.misbehave("/r", .redirect(to: "http://10.1.2.3/f", status: 302))
            var redirected = through("http://files.example/r")
            redirected.path = "redirected"
            #expect(await bench.run(redirected).failure?.kind == .refusedAddress)
            #expect(!bench.exists("redirected"))

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
