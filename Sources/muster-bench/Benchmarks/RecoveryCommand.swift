import ArgumentParser
import MusterAPI
import MusterCore
import MusterPostgres
import MusterTestSupport
import SystemPackage

/// `muster-bench recovery`: how long it takes until the chunks of a killed worker run elsewhere.
struct RecoveryCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "recovery", abstract: "kill -9 of a worker: when its chunks run elsewhere, what is fetched twice.")

    @Option(help: ArgumentHelp("Seconds that a worker may be silent. (default: 5, with --quick 2)", valueName: "s"))
    var ttl: Int?

    @OptionGroup var common: BenchOptions

    private static let fileCount = 8

    func measure(_ bench: Bench) async throws -> [Section] {
        let ttl = ttl ?? (bench.isQuick ? 2 : 5)
        let rate = bench.isQuick ? 512 << 10 : 1 << 20
        let size = Int64(rate * (ttl + 3))
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres, options: ["--session-ttl", "\(ttl)s"]) { fleet in
                let contest = Contest(
                    name: "recovery", title: "A worker with \(Self.fileCount) files under way is killed", unit: "s",
                    better: .lower,
                    contestants: [
                        Contestant(name: "until all of them run elsewhere", role: .muster) { turn in
                            // Each turn has its own server, so that the log covers that turn alone.
                            let files = try await OriginFiles(
                                bench, count: Self.fileCount, size: size, isShared: true, limitRate: rate,
                                isLogged: true)
                            return try await kill(turn, fleet, files, ttl: ttl)
                        }
                    ])
                return [try await contest.run(bench)]
            }
        }
    }

    private func kill(_ turn: Int, _ fleet: BenchFleet, _ files: OriginFiles, ttl: Int) async throws -> Sample {
        let connection = try await PostgresConnection.open(PostgresConfiguration(fleet.conninfo))
        let group = "recovery-\(turn)"
        _ = try await fleet.add(group, manifest: files.manifest(below: group), options: [])
        let victim = "victim-\(turn)"
        try await fleet.startWorker(victim, slots: Self.fileCount)
        let chunks = try await eventually("the victim's leases") { () async throws -> [Int64]? in
            let held = try await connection.query(
                """
                SELECT l.chunk_id FROM leases l JOIN sessions s ON s.id = l.session_id WHERE s.worker = \(victim)
                """
            ).map { try $0.decode("chunk_id", as: Int64.self) }
            return held.count >= Self.fileCount ? held : nil
        }
        try await fleet.startWorker("heir-\(turn)", slots: 2 * Self.fileCount)
        try await Task.sleep(for: .seconds(1))
        try await fleet.killWorker(victim)
        let begin = ContinuousClock.now
        try await eventually("the chunks to run elsewhere", limit: .seconds(ttl + 60)) {
            let left: Int64? = try await connection.query(
                """
                SELECT (SELECT count(*) FROM ready_chunks WHERE id = ANY(\(chunks)))
                    + (SELECT count(*) FROM leases l JOIN sessions s ON s.id = l.session_id
                        WHERE l.chunk_id = ANY(\(chunks)) AND s.worker = \(victim)) AS left
                """
            ).first?.decode("left")
            return left == 0
        }
        let seconds = (ContinuousClock.now - begin).seconds
        await connection.close()
        try await eventually("the end of \(group)", limit: .seconds(120)) {
            try await fleet.client.group(group).state == .succeeded
        }
        try Bench.check(fleet.sink.appending(group), files: Self.fileCount, size: files.size)
        try await fleet.stopWorker("heir-\(turn)")
        let sent = files.server.requests.reduce(0) { $0 + $1.bodyBytesSent }
        return Sample(
            value: seconds,
            facts: [
                "session TTL s": Double(ttl),
                "MiB sent twice": Double(sent - files.totalBytes) / 1_048_576,
                "MiB altogether": Double(files.totalBytes) / 1_048_576,
            ])
    }
}
