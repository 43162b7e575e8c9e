import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Coordinators and a database that go down under load (F3, F5, F20).
    @Suite struct Outage {
        @Test func fleetGoesOnOnceAKilledCoordinatorIsBack() async throws {
            var random = SeededGenerator.forTest()
            let load = try await Load(&random)
            try await Fleet.run { fleet in
                let coordinator = await fleet.coordinators[0]
                for name in ["a", "b"] { try await fleet.startWorker(name) }
                try await fleet.submit("g", load.files)
                for part in [0.1, 0.4] {
                    try await load.waitForShare(from: part, to: part + 0.2, &random)
                    guard let current = await fleet.coordinators.first else { throw Unexpected("no coordinator") }
                    try await fleet.kill(current.process)
                    try await fleet.startCoordinator(port: coordinator.port)
                }
                load.hurry()
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", load.files)
            }
        }

        @Test func oneCoordinatorOfTwoIsEnough() async throws {
            var random = SeededGenerator.forTest()
            let load = try await Load(&random)
            try await Fleet.run(coordinators: 2) { fleet in
                for name in ["a", "b"] { try await fleet.startWorker(name) }
                try await fleet.submit("g", load.files)
                let waiting = try await TestProcess.muster(["wait", "g", "--server", fleet.servers])
                try await load.waitForShare(from: 0.1, to: 0.6, &random)
                let victim = await fleet.coordinators[0]
                try await fleet.kill(victim.process)
                load.hurry()
                #expect(try await waiting.waitForExit(limit: .seconds(120)) == .exited(0))
                try await fleet.check("g", load.files)
            }
        }

        @Test func databaseThatCrashesUnderLoadLosesNothing() async throws {
            var random = SeededGenerator.forTest()
            let load = try await Load(&random)
            let postgres = try await TestPostgres.start(durability: .full)
            try await Fleet.run(on: postgres) { fleet in
                for name in ["a", "b"] { try await fleet.startWorker(name) }
                try await fleet.submit("g", load.files)
                for part in [0.1, 0.4] {
                    try await load.waitForShare(from: part, to: part + 0.2, &random)
                    try await postgres.restart(.immediate)
                }
                load.hurry()
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", load.files)
            }
        }

        @Test func everythingKilledAtOnceGoesOnWhenItIsStartedAgain() async throws {
            var random = SeededGenerator.forTest()
            let load = try await Load(&random)
            let postgres = try await TestPostgres.start(durability: .full)
            try await Fleet.run(on: postgres) { fleet in
                var workers: [TestProcess] = []
                for name in ["a", "b"] { workers.append(try await fleet.startWorker(name)) }
                try await fleet.submit("g", load.files)
                for (round, part) in [0.1, 0.5].enumerated() {
                    try await load.waitForShare(from: part, to: part + 0.2, &random)
                    try await fleet.cutPower(to: workers)
                    workers = []
                    for name in ["a", "b"] { workers.append(try await fleet.startWorker("\(name)\(round)")) }
                }
                load.hurry()
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", load.files)
            }
        }

        /// As after a reboot of the machine.
        @Test func aCoordinatorThatStartsBeforeItsDatabaseWaitsForIt() async throws {
            let postgres = try await TestPostgres.start(durability: .full)
            try await Fleet.run(on: postgres) { fleet in
                await postgres.stop(.immediate)
                let early = try await TestProcess.start(
                    try TestProcess.musterExecutable(), arguments: ["serve", "--listen", "127.0.0.1:0"],
                    environment: ["MUSTER_DATABASE": fleet.conninfo])
                _ = try await early.waitForLine(containing: "database.waiting", in: .standardError)
                try await postgres.start()
                _ = try await early.waitForLine(containing: "listening on", in: .standardOutput)
                try early.signal(SIGTERM)
                try await early.waitForExit()
            }
        }

        @Test func withoutDatabaseTheCoordinatorSaysSoAndWorkersGoOn() async throws {
            let origin = try await ScriptedOrigin.start()
            let size = Int64.kibibytes(900)
            let files = origin.serveFiles("f", sizes: [size, size, size])
            for file in files { origin.hold("/\(file.path)", afterBytes: .kibibytes(100)) }
            let postgres = try await TestPostgres.start(durability: .full)
            try await Fleet.run(on: postgres, timeToLive: "60s") { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", files)
                for file in files { try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100)) }
                await postgres.stop(.immediate)

                let answer = try PlainHTTP.get(port: await fleet.coordinators[0].port, path: "/v1/groups/g")
                #expect(answer.status == 503)
                #expect(answer.header("Retry-After").flatMap { Int($0) } ?? 0 > 0)
                #expect(answer.body.contains("\"databaseUnavailable\""))
                let status = try await fleet.muster(["status", "g"], expecting: 3)
                #expect(status.standardError.contains("databaseUnavailable"))

                // The files are finished while the workers can't report.
                for file in files { origin.release("/\(file.path)") }
                for file in files { try await origin.waitUntil("/\(file.path)", bytesSent: size) }
                for file in files {
                    try await eventually("\(file.path) in place") {
                        (try? FileDigest.sha256(fleet.sink.appending(file.path))) == file.sha256
                    }
                }
                try await postgres.start()
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", files)
                for file in files { #expect(origin.requests(for: "/\(file.path)").count == 1) }
            }
        }
    }
}
