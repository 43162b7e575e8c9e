import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

/// Another installation, with a database and a worker of its own, that works on the sink of the storm (F21, I18). Its database returns to an
/// older state at times (F24).
struct StormStrangers: Sendable {
    /// The folder of its files in the sink.
    static let folder = "strangers"

    let fleet: Fleet
    let origin: ScriptedOrigin
    private let count = Observed(0)

    init(fleet: Fleet, origin: ScriptedOrigin) {
        self.fleet = fleet
        self.origin = origin
    }

    /// Starts its worker on the sink of the others.
    func begin(on sink: FilePath) async throws { try await fleet.startWorker("stranger", sink: sink) }

    /// Fetches some files, which are right in the end, and leaves no parts.
    func fetch(into sink: FilePath) async throws -> [WantedFile] {
        let number = count.update { count in
            count += 1
            return count
        }
        let files = (0..<4).map { index in
            origin.serveFile(
                "\(Self.folder)/\(number)-\(index)", size: Int64(index) * 40_960,
                seed: UInt64(number * 10 + index))
        }
        try await fleet.submit("s\(number)", files)
        let group = try await fleet.waitForEnd(of: "s\(number)")
        #expect(group.state == .succeeded)
        try check(files, in: sink)
        return files
    }

    /// Takes a backup, fetches some files, and puts the backup in the place of the database: its worker has a past that the database does not
    /// know. What comes then gets the numbers of nothing that was lost, and everything is right.
    func goBack(on sink: FilePath) async throws {
        guard let quote = fleet.conninfo.firstRange(of: "dbname='") else {
            throw Unexpected("no name in \(fleet.conninfo)")
        }
        let name = String(fleet.conninfo[quote.upperBound...].prefix { $0 != "'" })
        let port = try await endCoordinator()
        let backup = try await fleet.postgres.makeDatabase(template: name)
        try await fleet.startCoordinator(port: port)
        let lost = try await fetch(into: sink)
        let former = "s\(count.value)"

        _ = try await endCoordinator()
        try await fleet.postgres.dropDatabase(name)
        try await fleet.postgres.execute("ALTER DATABASE \"\(backup.name)\" RENAME TO \"\(name)\"")
        try await fleet.startCoordinator(port: port)
        _ = try await fetch(into: sink)
        try check(lost, in: sink)
        let known = try await fleet.persistently { try await $0.groups(limit: 1_000) }.items.map(\.name)
        #expect(!known.contains(former), "the database has not returned to an older state")
    }

    private func check(_ files: [WantedFile], in sink: FilePath) throws {
        for file in files {
            #expect(try FileDigest.sha256(sink.appending(file.path)) == file.sha256, "\(file.path) of the strangers")
        }
    }

    /// Kills its coordinator and ends the connections of that, and returns its port.
    private func endCoordinator() async throws -> Int {
        guard let coordinator = await fleet.coordinators.first else { throw Unexpected("no coordinator") }
        try await fleet.kill(coordinator.process)
        let end = """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
            """
        try await eventually("the end of its connections") {
            try await fleet.postgres.execute(end, conninfo: fleet.conninfo).isEmpty
        }
        return coordinator.port
    }
}
