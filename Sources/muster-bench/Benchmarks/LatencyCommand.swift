import ArgumentParser
import MusterAPI
import MusterTestSupport
import Synchronization
import SystemPackage

/// `muster-bench latency`: how long a user, a task and an urgent task wait.
struct LatencyCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "latency",
        abstract: "muster get of one file, a task from its submission to its lease, an urgent file behind slow ones.")

    @Option(help: ArgumentHelp("Tasks a second, one in each request, while leases are timed.", valueName: "n"))
    var load = 100

    @Option(help: ArgumentHelp("How many such tasks. (default: 1000, with --quick 20)", valueName: "n"))
    var tasks: Int?

    @Option(
        help: ArgumentHelp(
            "Seconds that an urgent file is waited for. (default: 70, with --quick 4)", valueName: "s"))
    var patience: Int?

    @OptionGroup var common: BenchOptions

    func measure(_ bench: Bench) async throws -> [Section] {
        let get = try await gets(bench)
        let leases = try await leases(bench)
        let urgent = try await UrgentFile(patience: patience ?? (bench.isQuick ? 4 : 70)).measure(bench)
        return [get, leases, urgent]
    }

    /// One file by `muster get`, in a new directory and in one that has been used, beside curl.
    private func gets(_ bench: Bench) async throws -> Section {
        let files = try await OriginFiles(bench, count: 2, size: 100_000)
        let scratch = try bench.directory()
        let contest = Contest(
            name: "latency-get", title: "One file of 100 KB", unit: "s", better: .lower,
            contestants: [
                Contestant(name: "muster get, first in a directory", role: .muster) { turn in
                    let target = scratch.path.appending("first-\(turn)")
                    let sample = try await Self.get(bench, files.urls[0], into: target)
                    try Bench.remove(target)
                    return sample
                },
                Contestant(name: "muster get, again", role: .muster) { turn in
                    let target = scratch.path.appending("again-\(turn)")
                    _ = try await Self.get(bench, files.urls[0], into: target)
                    let sample = try await Self.get(bench, files.urls[1], into: target)
                    try Bench.remove(target)
                    return sample
                },
                Contestant(name: "curl", role: .peer) { turn in
                    guard let curl = InstalledProgram.find("curl") else { throw BenchFailure("curl is not installed") }
                    let target = scratch.path.appending("curl-\(turn)")
                    let outcome = try await TimedCommand(
                        program: curl, arguments: ["-q", "-s", "-S", "--fail", "-o", target.string, files.urls[0]]
                    ).run()
                    return Sample(value: outcome.seconds, cpuSeconds: ["own": outcome.cpuSeconds])
                },
            ])
        return try await contest.run(bench)
    }

    private static func get(_ bench: Bench, _ url: String, into directory: FilePath) async throws -> Sample {
        let outcome = try await TimedCommand(
            program: bench.muster, arguments: ["get", "-d", directory.string, url]
        ).run()
        return Sample(
            value: outcome.seconds, cpuSeconds: ["own": outcome.cpuSeconds],
            peakMebibytes: ["own": outcome.peakMebibytes])
    }

    /// Single tasks that are added at a steady rate while workers wait for them.
    private func leases(_ bench: Bench) async throws -> Section {
        let count = tasks ?? (bench.isQuick ? 20 : 1_000)
        let pause = Duration.seconds(1) / max(load, 1)
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres, options: Lifecycles.options) { fleet in
                let contest = Contest(
                    name: "latency-lease", title: "A task from its submission to its lease, \(load) a second",
                    unit: "ms (p99)", better: .lower,
                    contestants: [
                        Contestant(name: "muster", role: .muster) { turn in
                            try await Self.timeLeases(fleet, group: "lease-\(turn)", count: count, pause: pause)
                        }
                    ])
                return try await contest.run(bench)
            }
        }
    }

    private static func timeLeases(
        _ fleet: BenchFleet, group: String, count: Int, pause: Duration
    ) async throws -> Sample {
        let load = SyntheticLoad(client: fleet.client)
        var policy = TransferPolicy()
        policy.reuse = false
        _ = try await fleet.client.createGroup(GroupRequest(name: group, policy: policy))
        let times = LeaseTimes()
        let tally = SyntheticWorker.Tally(goal: count)
        async let worked: Void = SyntheticWorker.run(4, by: fleet.client, tally) { times.leased($0.path) }
        let begin = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { requests in
            for index in 0..<count {
                try await Task.sleep(until: begin + pause * index)
                requests.addTask {
                    times.submitted("\(group)/\(index)")
                    _ = try await fleet.client.addTasks([load.task(index, of: group)], to: group)
                    times.answered("\(group)/\(index)")
                }
            }
            try await requests.waitForAll()
        }
        try await worked
        let statistics = Statistics(times.seconds)
        let afterAnswers = Statistics(times.secondsAfterAnswers)
        guard let median = statistics.median, let most = statistics.percentile(0.99) else {
            throw BenchFailure("nothing was leased")
        }
        return Sample(
            value: most * 1_000,
            facts: [
                "p50 ms": median * 1_000,
                "p99 ms after the answer": (afterAnswers.percentile(0.99) ?? 0) * 1_000,
            ])
    }

    /// When tasks were submitted, answered and leased.
    private final class LeaseTimes: Sendable {
        private struct Times {
            var submitted: ContinuousClock.Instant?
            var answered: ContinuousClock.Instant?
            var leased: ContinuousClock.Instant?
        }

        private let tasks = Mutex([String: Times]())

        /// Seconds from sending each request to its lease.
        var seconds: [Double] { seconds { $0.submitted } }
        /// Seconds from each answer to its lease; 0 for a lease that came before the answer.
        var secondsAfterAnswers: [Double] { seconds { $0.answered } }

        func submitted(_ path: String) { tasks.withLock { $0[path, default: Times()].submitted = .now } }
        func answered(_ path: String) { tasks.withLock { $0[path, default: Times()].answered = .now } }
        func leased(_ path: String) { tasks.withLock { $0[path, default: Times()].leased = .now } }

        private func seconds(since begin: (Times) -> ContinuousClock.Instant?) -> [Double] {
            tasks.withLock { tasks in
                tasks.values.compactMap { times in
                    guard let begin = begin(times), let leased = times.leased else { return nil }
                    return max((leased - begin).seconds, 0)
                }
            }
        }
    }
}
