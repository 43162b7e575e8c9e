import ArgumentParser
import MusterAPI

/// `muster-bench groups`: whether many open groups cost more than one.
struct GroupsCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "groups", abstract: "The same tasks in many groups and in one, by synthetic workers.")

    @Option(help: ArgumentHelp("Tasks altogether. (default: 20000, with --quick 400)", valueName: "n"))
    var tasks: Int?

    @Option(help: ArgumentHelp("Numbers of groups. (default: 200 and 1000, with --quick 20)", valueName: "n"))
    var groups: [Int] = []

    @Option(help: ArgumentHelp("Synthetic workers.", valueName: "n"))
    var workers = 4

    @OptionGroup var common: BenchOptions

    func validate() throws {
        guard groups.allSatisfy({ $0 > 0 }) else { throw ValidationError("--groups takes numbers from 1") }
    }

    func measure(_ bench: Bench) async throws -> [Section] {
        let count = tasks ?? (bench.isQuick ? 400 : 20_000)
        let groups = !groups.isEmpty ? groups : bench.isQuick ? [20] : [200, 1_000]
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres, options: Lifecycles.options) { fleet in
                let load = SyntheticLoad(client: fleet.client)
                let lifecycles = Lifecycles(fleet: fleet, workers: workers)
                var contestants = [
                    Contestant(name: "one group", role: .baseline) { turn in
                        try await load.fill("one-\(turn)", count: count)
                        let sample = try await lifecycles.run(count)
                        _ = try await fleet.client.removeGroup("one-\(turn)")
                        return sample
                    }
                ]
                contestants += groups.map { groups in
                    let each = max(count / groups, 1)
                    return Contestant(name: "\(Figure.count(groups)) groups of \(each)", role: .muster) { turn in
                        let names = (0..<groups).map { "many-\(turn)-\(groups)-\($0)" }
                        try await load.create(names, count: each)
                        let sample = try await lifecycles.run(each * groups)
                        for name in names { _ = try await fleet.client.removeGroup(name) }
                        return sample
                    }
                }
                let contest = Contest(
                    name: "groups", title: "\(Figure.count(count)) files of one chunk in many groups",
                    unit: "lifecycles/s", better: .higher, contestants: contestants)
                return [try await contest.run(bench)]
            }
        }
    }
}
