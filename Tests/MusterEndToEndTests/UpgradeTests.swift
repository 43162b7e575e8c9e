import Glibc
import MusterTestSupport
import Testing

extension EndToEnd {
    /// All coordinators of a database run one build; workers go on while they are replaced (`adr/0016`, F18).
    @Suite struct Upgrade {
        /// Makes the database one of another build, with other functions.
        static let otherBuild = """
            UPDATE muster_build SET build = 'another', verbs = array_remove(verbs, 'seal_group(bigint)') || 'former()'::text;
            DROP FUNCTION seal_group(bigint);
            CREATE FUNCTION former() RETURNS integer LANGUAGE sql AS 'SELECT 1'
            """

        @Test func coordinatorsAreUpgradedUnderLoadAndNothingIsLost() async throws {
            var random = SeededGenerator.forTest()
            let origin = try await ScriptedOrigin.start()
            let others = (0..<59).map { _ in Int64.random(in: 1...Int64.kibibytes(600), using: &random) }
            let sizes = [Int64.kibibytes(600)] + others
            let total = sizes.reduce(0, +)
            let files = origin.serveFiles("f", sizes: sizes, seed: random.next())
            origin.limitRate(bytesPerSecond: 1 << 20)
            origin.hold("/f0", afterBytes: .kibibytes(100))
            let sent: @Sendable () -> Int64 = { origin.requests.reduce(0) { $0 + $1.bodyBytesSent } }

            try await Fleet.run(coordinators: 2, timeToLive: "60s") { fleet in
                for name in ["a", "b", "c"] { try await fleet.startWorker(name) }
                try await fleet.submit("g", files)
                try await origin.waitUntil("/f0", bytesSent: .kibibytes(100))
                try await eventually("a fifth of the bytes") { sent() >= total / 5 }
                let sessions = try await self.sessions(of: fleet)
                let former = await fleet.coordinators
                for coordinator in former { try coordinator.process.signal(SIGTERM) }
                for coordinator in former { try await coordinator.process.waitForExit() }
                // A worker goes on without a coordinator.
                origin.release("/f0")
                try await origin.waitUntil("/f0", bytesSent: sizes[0])
                try await fleet.postgres.execute(Self.otherBuild, conninfo: fleet.conninfo)

                let refused = try await fleet.muster(
                    ["serve", "--listen", "127.0.0.1:0"], expecting: 1, environment: ["MUSTER_DATABASE": fleet.conninfo]
                )
                #expect(refused.standardError.contains("run muster migrate"))

                // Both bring the schema up to date, as containers do.
                async let first = fleet.startCoordinator(port: former[0].port, options: ["--migrate"])
                async let second = fleet.startCoordinator(port: former[1].port, options: ["--migrate"])
                _ = try await (first, second)
                origin.limitRate(bytesPerSecond: nil)
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", files)
                #expect(try await self.sessions(of: fleet) == sessions, "a session has expired")
                // Except for single bytes, by which a worker checks whether a file can be had again (adr/0033).
                #expect((total...total + 32).contains(sent()), "bytes were fetched twice")
            }
        }

        @Test func aCoordinatorThatMeetsAnotherBuildEndsAndSaysWhatToDo() async throws {
            try await Fleet.run { fleet in
                try await fleet.postgres.execute(
                    """
                    \(Self.otherBuild);
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE application_name = 'muster-coordinator' AND datname = current_database()
                    """, conninfo: fleet.conninfo)
                let process = await fleet.coordinators[0].process
                #expect(try await process.waitForExit() == .exited(1))
                #expect(process.standardError.contains("run muster migrate"))
            }
        }

        private func sessions(of fleet: Fleet) async throws -> String {
            try await fleet.postgres.execute(
                "SELECT string_agg(worker || ' ' || id, ', ' ORDER BY id) FROM sessions", conninfo: fleet.conninfo)
        }
    }
}
