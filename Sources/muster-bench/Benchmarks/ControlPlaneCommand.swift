import ArgumentParser
import MusterAPI

/// `muster-bench control-plane`: what leasing and reporting cost, without any transfer.
struct ControlPlaneCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "control-plane",
        abstract: "Synthetic workers over HTTP: chunks leased, done and finished in a second.")

    @Option(help: ArgumentHelp("Tasks of one chunk. (default: 20000, with --quick 400)", valueName: "n"))
    var tasks: Int?

    @Option(help: ArgumentHelp("Numbers of origins that the tasks are of.", valueName: "n"))
    var origins = [1, 5, 200]

    @Option(help: ArgumentHelp("Synthetic workers.", valueName: "n"))
    var workers = 4

    @OptionGroup var common: BenchOptions

    func measure(_ bench: Bench) async throws -> [Section] {
        let count = tasks ?? (bench.isQuick ? 400 : 20_000)
        return try await BenchFleet.withPostgres(bench) { postgres in
            let bare = try await BareStatements(on: postgres)
            let section = try await BenchFleet.run(bench, on: postgres, options: Lifecycles.options) { fleet in
                var contestants = origins.map { origins in
                    Contestant(name: origins == 1 ? "muster, 1 origin" : "muster, \(origins) origins", role: .muster) {
                        turn in
                        let group = "g-\(turn)-\(origins)"
                        try await SyntheticLoad(client: fleet.client, origins: origins).fill(group, count: count)
                        let sample = try await Lifecycles(fleet: fleet, workers: workers).run(count)
                        _ = try await fleet.client.removeGroup(group)
                        return sample
                    }
                }
                contestants.append(
                    Contestant(name: "bare statements", role: .floor) { _ in
                        let result = try await bare.run(tasks: count, connections: workers, batch: 256)
                        return Sample(
                            value: Double(count) / result.seconds,
                            facts: result.written.facts(per: count, unit: "chunk"))
                    })
                return try await Contest(
                    name: "control-plane",
                    title:
                        "Control plane: \(Figure.count(count)) files of one chunk, \(workers) synthetic workers",
                    unit: "lifecycles/s", better: .higher, contestants: contestants
                ).run(bench)
            }
            try await bare.drop()
            return [section]
        }
    }
}
