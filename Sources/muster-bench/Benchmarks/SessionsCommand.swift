import ArgumentParser
import MusterAPI
import MusterCore
import Synchronization

/// `muster-bench sessions`: the cost of many workers for one coordinator, with and without work.
struct SessionsCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "sessions",
        abstract:
            "Many synthetic workers on one coordinator: idle ones that wait, and busy ones that report each second.")

    @Option(help: ArgumentHelp("How many workers. (default: 1000, with --quick 20)", valueName: "n"))
    var sessions: Int?

    @Option(help: ArgumentHelp("For how long they are watched. (default: 20, with --quick 2)", valueName: "s"))
    var seconds: Int?

    @OptionGroup var common: BenchOptions

    func validate() throws {
        guard (1...10_000).contains(sessions ?? 1) else { throw ValidationError("--sessions is 1 to 10000") }
        guard (1...3_600).contains(seconds ?? 1) else { throw ValidationError("--seconds is 1 to 3600") }
    }

    func measure(_ bench: Bench) async throws -> [Section] {
        let count = sessions ?? (bench.isQuick ? 20 : 1_000)
        let time = Duration.seconds(seconds ?? (bench.isQuick ? 2 : 20))
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres, options: Lifecycles.options) { fleet in
                let crowd = Crowd(fleet: fleet, count: count, time: time)
                let contest = Contest(
                    name: "sessions",
                    title: "A sync beside those of \(Figure.count(count)) workers", unit: "ms (p99)", better: .lower,
                    contestants: [
                        Contestant(name: "idle, each waits for work", role: .baseline) { _ in
                            try await crowd.watch(isBusy: false)
                        },
                        Contestant(name: "busy, each reports a chunk's progress once a second", role: .muster) { turn in
                            let group = "busy-\(turn)"
                            try await SyntheticLoad(client: fleet.client, size: 1 << 40).fill(group, count: count)
                            let sample = try await crowd.watch(isBusy: true)
                            _ = try await fleet.client.apply(.cancel, to: group)
                            return sample
                        },
                    ],
                    notes: ["CPU is that of \(time.components.seconds) s; a sync that waits for work is not timed"])
                return [try await contest.run(bench)]
            }
        }
    }
}

/// Many sessions at the same time.
private struct Crowd: Sendable {
    let fleet: BenchFleet
    let count: Int
    let time: Duration

    /// The durations of syncs that don't wait, while all sessions are open.
    private final class Times: Sendable {
        private let seconds = Mutex<[Double]>([])

        func note(_ duration: Duration) { seconds.withLock { $0.append(duration.seconds) } }
        func take() -> [Double] {
            seconds.withLock { known in
                defer { known = [] }
                return known
            }
        }
    }

    /// Opens all sessions, and measures them for a while.
    func watch(isBusy: Bool) async throws -> Sample {
        let times = Times()
        return try await withThrowingTaskGroup(of: Void.self) { workers in
            let (opened, continuation) = AsyncThrowingStream<Void, any Error>.makeStream()
            for index in 0..<count {
                workers.addTask {
                    do {
                        try await work("crowd-\(index)", isBusy: isBusy, times) { continuation.yield() }
                    } catch {
                        // The measurement ends, since not all sessions can be open.
                        continuation.finish(throwing: error)
                        throw error
                    }
                }
            }
            var left = count
            for try await _ in opened {
                left -= 1
                if left == 0 { break }
            }
            let meter = await fleet.meter()
            meter.resetPeaks()
            _ = times.take()
            let written = try await fleet.database.read()
            let cpu = meter.cpuSeconds()
            let ownCPU = ProcessTimes(of: "self")?.own ?? 0
            try await observe(isBusy: isBusy, times)
            let statistics = Statistics(times.take())
            var sample = Sample(
                value: (statistics.percentile(0.99) ?? .nan) * 1_000,
                cpuSeconds: ProcessMeter.difference(meter.cpuSeconds(), cpu), peakMebibytes: meter.peakMebibytes())
            sample.cpuSeconds["synthetic workers"] = (ProcessTimes(of: "self")?.own ?? 0) - ownCPU
            sample.facts = try await fleet.database.since(written).facts(
                per: Int(time.components.seconds), unit: "second")
            sample.facts["p50 ms"] = (statistics.median ?? .nan) * 1_000
            sample.facts["syncs/s"] = Double(statistics.sorted.count) / time.seconds
            workers.cancelAll()
            while let result = await workers.nextResult() {
                if case .failure(let error) = result, !(error is CancellationError) { throw error }
            }
            return sample
        }
    }

    /// Waits for the end of the measurement. Among idle sessions one more worker syncs meanwhile, ten times a second.
    private func observe(isBusy: Bool, _ times: Times) async throws {
        let end = ContinuousClock.now + time
        guard !isBusy else {
            try await Task.sleep(until: end)
            return
        }
        let session = try await open("observer")
        var sequence: Int64 = 0
        while ContinuousClock.now < end {
            sequence += 1
            let begin = ContinuousClock.now
            _ = try await fleet.client.sync(session, Self.request(sequence, waitMilliseconds: 0))
            times.note(.now - begin)
            try await Task.sleep(for: .milliseconds(100))
        }
        try await fleet.client.closeSession(session)
    }

    private func open(_ name: String) async throws -> SessionID {
        try await fleet.client.openSession(
            SessionRequest(name: name, sinks: ["default"], slots: 1, version: "bench")
        ).id
    }

    private static func request(
        _ sequence: Int64, _ reports: [Report] = [], held: [LeaseName] = [], room: Int = 0, waitMilliseconds: Int64
    ) -> SyncRequest {
        SyncRequest(
            sequence: sequence, settled: sequence - 1, reports: reports, held: held, room: room,
            waitMilliseconds: waitMilliseconds, sinks: [SinkStatus(name: "default")])
    }

    /// One worker: an idle worker asks for work and waits for it, a busy worker reports the progress of its chunk each second.
    private func work(_ name: String, isBusy: Bool, _ times: Times, opened: () -> Void) async throws {
        let session = try await open(name)
        var (sequence, lease, offset): (Int64, LeaseDocument?, Int64) = (0, nil, 0)
        var isFirst = true
        while !Task.isCancelled {
            sequence += 1
            offset += 1 << 20
            let reports = lease.map {
                [Report(lease: $0.name, kind: .progress, durable: DurablePrefix(offset: $0.start + offset, crc: 0))]
            }
            let begin = ContinuousClock.now
            let answer = try await fleet.client.sync(
                session,
                Self.request(
                    sequence, reports ?? [], held: lease.map { [$0.name] } ?? [], room: lease == nil ? 1 : 0,
                    waitMilliseconds: isBusy || isFirst ? 0 : 10_000))
            if isBusy { times.note(.now - begin) }
            if lease == nil { lease = answer.leases.first }
            if isFirst, !isBusy || lease != nil {
                isFirst = false
                opened()
            }
            if isBusy { try await Task.sleep(until: begin + .seconds(1)) }
        }
    }
}
