import ArgumentParser

/// `muster-bench all`: the benchmarks, one after the other.
struct AllCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "all", abstract: "All of the others but distance and soak, with their defaults.")

    @OptionGroup var common: BenchOptions

    func run() async throws {
        var failed: [String] = []
        try await common.report { bench in
            var sections: [Section] = []
            for benchmark in try Self.benchmarks() {
                let name = type(of: benchmark).configuration.commandName ?? "benchmark"
                bench.say("=== \(name)")
                do {
                    sections += try await benchmark.measure(bench)
                } catch {
                    // Keep the other results, which take long to measure.
                    bench.say("\(name) failed: \(error)")
                    failed.append(name)
                }
            }
            return sections
        }
        guard failed.isEmpty else {
            throw BenchFailure("these failed: \(failed.joined(separator: ", "))")
        }
    }

    /// Each benchmark with its defaults; the circumstances come from ``Bench``.
    private static func benchmarks() throws -> [any Benchmark] {
        [
            try SmallCommand.parse([]), try LargeCommand.parse([]), try ControlPlaneCommand.parse([]),
            try GroupsCommand.parse([]), try ImportCommand.parse([]), try LatencyCommand.parse([]),
            try ScalingCommand.parse([]), try RecoveryCommand.parse([]),
            try SessionsCommand.parse([]), try BacklogCommand.parse([]),
        ]
    }
}
