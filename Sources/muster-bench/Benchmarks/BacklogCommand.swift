import ArgumentParser
import MusterAPI

/// `muster-bench backlog`: whether a claim takes longer when many tasks are queued.
struct BacklogCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "backlog",
        abstract: "How long a claim of 256 takes with few and with many queued tasks, and where nothing is vacuumed.")

    @Option(
        help: ArgumentHelp(
            "How many tasks are queued, 20,000 to 10 million. (default: 1000000, with --quick 20000)", valueName: "n"))
    var tasks: Int?

    @Option(help: ArgumentHelp("Claims in each round, 1 to 30.", valueName: "n"))
    var claims = 20

    @OptionGroup var common: BenchOptions

    /// The number of queued tasks of the baseline.
    private static let few = 10_000

    func validate() throws {
        guard (20_000...10_000_000).contains(tasks ?? 20_000) else {
            throw ValidationError("--tasks is 20000 to 10000000")
        }
        guard (1...30).contains(claims) else { throw ValidationError("--claims is 1 to 30") }
    }

    func measure(_ bench: Bench) async throws -> [Section] {
        let many = tasks ?? (bench.isQuick ? 20_000 : 1_000_000)
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres, options: Lifecycles.options) { small in
                try await BenchFleet.run(bench, on: postgres, options: Lifecycles.options) { large in
                    let load = SyntheticLoad(client: large.client)
                    bench.say("backlog: adding \(Figure.count(many)) tasks")
                    let begin = ContinuousClock.now
                    try await load.fill("backlog", count: many)
                    let seconds = (ContinuousClock.now - begin).seconds
                    return [
                        try await contest(small: small, large: large, many: many, filledIn: seconds).run(bench)
                    ]
                }
            }
        }
    }

    private func contest(small: BenchFleet, large: BenchFleet, many: Int, filledIn seconds: Double) -> Contest {
        Contest(
            name: "backlog", title: "A claim of 256 leases, of one synthetic worker", unit: "ms", better: .lower,
            contestants: [
                Contestant(name: "\(Figure.count(Self.few)) queued", role: .baseline) { turn in
                    try await SyntheticLoad(client: small.client).fill("few-\(turn)", count: Self.few)
                    let sample = try await claim(small)
                    _ = try await small.client.removeGroup("few-\(turn)")
                    return sample
                },
                Contestant(name: "\(Figure.count(many)) queued", role: .muster) { _ in
                    try await claim(large)
                },
                Contestant(name: "\(Figure.count(many)) queued, behind an old snapshot", role: .muster) { turn in
                    // The dead rows of the first files still exist when the claims are timed.
                    try await large.database.withOldSnapshot {
                        let dead = min(Self.few, many / 8)
                        try await SyntheticLoad(client: large.client).fill("dead-\(turn)", count: dead)
                        _ = try await Lifecycles(fleet: large, workers: 4).run(dead)
                        return try await claim(large)
                    }
                },
            ],
            notes: [
                "\(Figure.count(many)) tasks were added in \(Figure.text(seconds)) s, \(Figure.text(Double(many) / seconds)) a second"
            ])
    }

    private func claim(_ fleet: BenchFleet) async throws -> Sample {
        let meter = await fleet.meter()
        let cpu = meter.cpuSeconds()
        let tally = SyntheticWorker.Tally(goal: claims * 256)
        let begin = ContinuousClock.now
        try await SyntheticWorker(client: fleet.client, name: "synthetic", isAlternating: true).run(tally)
        let seconds = ((tally.endedAt ?? .now) - begin).seconds
        let times = Statistics(tally.syncSeconds)
        return Sample(
            value: (times.median ?? .nan) * 1_000, cpuSeconds: ProcessMeter.difference(meter.cpuSeconds(), cpu),
            peakMebibytes: meter.peakMebibytes(),
            facts: [
                "lifecycles/s": Double(tally.finished) / seconds,
                "p99 ms": (times.percentile(0.99) ?? .nan) * 1_000,
            ])
    }
}
