import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

extension EndToEnd {
    /// Which addresses a fleet fetches from (range contract, row 39), through the whole of Muster.
    @Suite struct Addresses {
        /// Adds one task, and returns the kind of failure it ends with.
        private func failure(of url: String, in group: String, _ fleet: Fleet) async throws -> FailureKind? {
            let client = await fleet.client()
            let tasks = [TaskRequest(urls: [url], key: "file", path: group)]
            _ = try await client.createGroup(GroupRequest(name: group, sealed: true, tasks: tasks))
            try await fleet.waitForEnd(of: group)
            return try await client.task("file", of: group).failure?.kind
        }

        @Test func guardedFleetAsksNoPrivateAddress() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("file", size: 1_000)
            try await Fleet.run(options: ["--guard-addresses"]) { fleet in
                try await fleet.startWorker("a")
                #expect(try await failure(of: file.url, in: "by-address", fleet) == .refusedAddress)
                let named = "http://localhost:\(origin.port)/file"
                #expect(try await failure(of: named, in: "by-name", fleet) == .refusedAddress)
            }
            #expect(origin.requests.isEmpty)
        }

        @Test func workerObeysTheRuleOfACoordinatorThatIsStartedAnew() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("file", size: 1_000)
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                for (options, expected) in [(["--guard-addresses"], FailureKind.refusedAddress), ([], nil)] {
                    for coordinator in await fleet.coordinators {
                        try coordinator.process.signal(SIGTERM)
                        try await coordinator.process.waitForExit()
                        try await fleet.startCoordinator(port: coordinator.port, options: options)
                    }
                    let group = expected == nil ? "open" : "guarded"
                    #expect(try await failure(of: file.url, in: group, fleet) == expected)
                }
            }
        }

        @Test func allowedNetworkIsAskedAndLeadsNowhereElse() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("file", size: 1_000)
            for (path, place) in [("neighbour", "127.0.0.2:\(origin.port)"), ("metadata", "169.254.169.254")] {
                _ = origin.serveFile(path, size: 1_000)
                origin.misbehave("/\(path)", .redirect(to: "http://\(place)/file", status: 302))
            }
            try await Fleet.run(options: ["--guard-addresses", "--allow-address", "127.0.0.1"]) { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", [file])
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", [file])
                for path in ["neighbour", "metadata"] {
                    #expect(
                        try await failure(of: origin.url("/\(path)"), in: path, fleet) == .refusedAddress, "\(path)")
                }
            }
        }
    }
}
