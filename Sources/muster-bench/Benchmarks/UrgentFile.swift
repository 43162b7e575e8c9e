import MusterAPI
import MusterCore
import MusterTestSupport

/// The wait for an urgent file of 6 bytes while another group has all connections of its origin, each of them slow.
struct UrgentFile: Sendable {
    /// The rate of each connection in bytes per second.
    private static let rate = 20 << 10

    /// How many seconds the file is waited for.
    let patience: Int

    /// Measures once: the wait lasts for the whole patience if priority does not affect running transfers.
    func measure(_ bench: Bench) async throws -> Section {
        let files = try await OriginFiles(
            bench, count: bench.isQuick ? 8 : 4, size: bench.isQuick ? 2_000_000 : 20_000_000, isShared: true,
            limitRate: Self.rate)
        let urgent = try files.put("urgent.txt", "urgent")
        let once = Bench(
            muster: bench.muster, own: bench.own, rounds: 1, warmUps: 0, isQuick: bench.isQuick, place: bench.place)
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres) { fleet in
                try await fleet.startWorker("worker", slots: 16)
                let megabytes = Figure.text(Double(files.size) / 1_000_000)
                let contest = Contest(
                    name: "latency-urgent",
                    title:
                        "6 bytes with priority 1000 behind \(files.names.count) files of \(megabytes) MB at 20 KiB/s for each connection",
                    unit: "s", better: .lower,
                    contestants: [
                        Contestant(name: "muster", role: .muster) { turn in
                            try await wait(for: urgent, behind: files, fleet, turn: turn)
                        }
                    ],
                    notes: ["was given up after \(patience) s at the latest"])
                return try await contest.run(once)
            }
        }
    }

    private func wait(
        for url: String, behind files: OriginFiles, _ fleet: BenchFleet, turn: Int
    ) async throws -> Sample {
        let slow = "slow-\(turn)"
        _ = try await fleet.add(slow, manifest: files.manifest(below: slow), options: [])
        // By then the first answers have come, the sizes are known, and every connection that the group may have is taken.
        try await Task.sleep(for: .seconds(3))
        let group = "urgent-\(turn)"
        let begin = ContinuousClock.now
        _ = try await fleet.client.createGroup(
            GroupRequest(
                name: group, sealed: true, priority: 1_000,
                tasks: [TaskRequest(urls: [url], path: "\(group)/urgent.txt")]))
        var isDone = true
        do {
            try await eventually("the urgent file", limit: .seconds(patience)) {
                try await fleet.client.group(group).state == .succeeded
            }
        } catch is TimedOut {
            isDone = false
        }
        let seconds = (ContinuousClock.now - begin).seconds
        for name in [group, slow] {
            _ = try? await fleet.client.apply(.cancel, to: name)
        }
        return Sample(value: seconds, facts: ["done": isDone ? 1 : 0])
    }
}
