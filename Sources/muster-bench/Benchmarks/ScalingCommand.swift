import ArgumentParser
import Glibc
import MusterAPI
import MusterTestSupport
import SystemPackage

/// `muster-bench scaling`: the effect of more workers where each connection is slow.
struct ScalingCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "scaling", abstract: "1, 2, 4 and 8 workers on an origin that limits the rate of each connection.")

    @Option(help: ArgumentHelp("Numbers of workers. (default: 1 2 4 8, with --quick 1 2)", valueName: "n"))
    var workers: [Int] = []

    @Option(help: ArgumentHelp("Slots of each worker.", valueName: "n"))
    var slots = 2

    @Option(help: ArgumentHelp("KiB a second of each connection.", valueName: "KiB"))
    var rate = 1_024

    @OptionGroup var common: BenchOptions

    /// Files that each slot fetches, one after the other. nginx sends the bytes of a file's first second at once.
    private static let filesPerSlot = 3

    func measure(_ bench: Bench) async throws -> [Section] {
        let numbers = !workers.isEmpty ? workers : bench.isQuick ? [1, 2] : [1, 2, 4, 8]
        let most = numbers.max() ?? 1
        let files = try await OriginFiles(
            bench, count: most * slots * Self.filesPerSlot, size: Int64(rate) * 1_024 * (bench.isQuick ? 2 : 4),
            isShared: true, limitRate: rate * 1_024)
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres, options: Lifecycles.options) { fleet in
                var contestants = numbers.map { number in
                    let name = number == 1 ? "1 worker" : "\(number) workers"
                    return Contestant(name: name, role: number == 1 ? .baseline : .muster) { turn in
                        try await fetch(files, by: number, of: fleet, group: "scale-\(turn)-\(number)")
                    }
                }
                if numbers.contains(2) {
                    contestants.append(
                        Contestant(name: "2 workers, one stopped half of the time", role: .muster) { turn in
                            try await fetch(files, by: 2, of: fleet, group: "slow-\(turn)", stopping: true)
                        })
                }
                let contest = Contest(
                    name: "scaling",
                    title: "Workers with \(slots) slots, \(Figure.count(rate)) KiB/s for each connection",
                    unit: "MiB/s", better: .higher, contestants: contestants)
                return [try await contest.run(bench)]
            }
        }
    }

    private func fetch(
        _ files: OriginFiles, by number: Int, of fleet: BenchFleet, group: String, stopping: Bool = false
    ) async throws -> Sample {
        let names = (0..<number).map { "worker-\($0)" }
        var processes: [TestProcess] = []
        for name in names { processes.append(try await fleet.startWorker(name, slots: slots)) }
        let count = number * slots * Self.filesPerSlot
        let meter = await fleet.meter()
        let cpu = meter.cpuSeconds()
        let stopper = stopping ? processes.first.map(Self.stopHalfOfTheTime) : nil
        defer { stopper?.cancel() }
        let outcome = try await fleet.add(group, manifest: files.manifest(below: group, first: count))
        stopper?.cancel()
        await stopper?.value
        let used = ProcessMeter.difference(meter.cpuSeconds(), cpu)
        for name in names { try await fleet.stopWorker(name) }
        try Bench.check(fleet.sink.appending(group), files: count, size: files.size)
        _ = try await fleet.client.removeGroup(group)
        try Bench.remove(fleet.sink.appending(group))
        let mebibytes = Double(files.size) * Double(count) / 1_048_576
        return Sample(value: mebibytes / outcome.seconds, cpuSeconds: used)
    }

    /// Stops a process for half a second of each second, until it is cancelled.
    private static func stopHalfOfTheTime(_ process: TestProcess) -> Task<Void, Never> {
        Task {
            while !Task.isCancelled {
                _ = try? process.signal(SIGSTOP)
                try? await Task.sleep(for: .milliseconds(500))
                _ = try? process.signal(SIGCONT)
                try? await Task.sleep(for: .milliseconds(500))
            }
        }
    }
}
