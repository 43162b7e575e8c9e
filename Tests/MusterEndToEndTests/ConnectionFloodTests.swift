import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Thousands of connections that send nothing, or almost nothing (F22, F23).
    @Suite struct ConnectionFloods {
        /// A worker does its work while the connections are open, and the coordinator still runs afterwards.
        private func workGoesOn(_ fleet: Fleet, _ origin: ScriptedOrigin, group: String) async throws {
            let file = origin.serveFile("\(group).bin", size: .kibibytes(300))
            _ = try await fleet.muster(["add", group, file.url, "--wait"], limit: .seconds(60))
            #expect(try FileDigest.sha256(fleet.sink.appending(file.path)) == file.sha256)
        }

        @Test(arguments: ConnectionFlood.Talk.allCases)
        func moreConnectionsThanDescriptorsStarveNoWorker(_ talk: ConnectionFlood.Talk) async throws {
            ConnectionFlood.raiseLimit()
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run(prefix: ["prlimit", "--nofile=256:1024"]) { fleet in
                try await fleet.startWorker("a")
                let coordinator = await fleet.coordinators[0]
                try await workGoesOn(fleet, origin, group: "before")
                let flood = ConnectionFlood()
                try flood.open(1_100, port: coordinator.port, saying: talk)
                try await workGoesOn(fleet, origin, group: "during")
                try flood.open(500, port: coordinator.port, saying: talk)
                try await workGoesOn(fleet, origin, group: "again")
                #expect(coordinator.process.exit == nil)
                flood.close()
            }
        }

        @Test func fiveThousandIdleConnectionsLeaveSyncsUnharmed() async throws {
            let count = min(5_000, ConnectionFlood.raiseLimit() - 1_000)
            try #require(count > 0, "the machine allows too few descriptors for a flood")
            let origin = try await ScriptedOrigin.start()
            // As in production. A shorter session may end on a busy machine without any fault of the coordinator.
            try await Fleet.run(timeToLive: "30s") { fleet in
                try await fleet.startWorker("a")
                let flood = ConnectionFlood()
                let coordinator = await fleet.coordinators[0]
                try flood.open(count / 2, port: coordinator.port, saying: .nothing)
                try flood.open(count / 2, port: coordinator.port, saying: .beginningOfHead)
                try await workGoesOn(fleet, origin, group: "during")
                #expect(coordinator.process.exit == nil)
                // The worker still has its first session: no sync came too late.
                #expect(await fleet.worker("a")?.exit == nil)
                let opened = await fleet.worker("a")?.standardError.split(separator: "Session opened").count
                #expect(opened == 2)
                flood.close()
            }
        }
    }
}
