import MusterTestSupport

/// Measures leases and reports of synthetic workers over HTTP.
struct Lifecycles: Sendable {
    /// The options of the coordinators: the cap of the origin is not measured.
    static let options = ["--max-connections-per-origin", "100000"]

    /// The fleet, which has no workers of its own.
    let fleet: BenchFleet
    /// How many synthetic workers there are.
    let workers: Int

    /// Finishes the queued tasks, and returns how many were finished per second.
    func run(_ count: Int) async throws -> Sample {
        var meter = await fleet.meter()
        meter.resetPeaks()
        meter.roots.removeAll { $0.name == "worker" }
        let written = try await fleet.database.read()
        let cpu = meter.cpuSeconds()
        let ownCPU = ProcessTimes(of: "self")?.own ?? 0
        let tally = SyntheticWorker.Tally(goal: count)
        let begin = ContinuousClock.now
        try await SyntheticWorker.run(workers, by: fleet.client, tally)
        let seconds = ((tally.endedAt ?? .now) - begin).seconds
        var sample = Sample(
            value: Double(count) / seconds, cpuSeconds: ProcessMeter.difference(meter.cpuSeconds(), cpu),
            peakMebibytes: meter.peakMebibytes())
        sample.cpuSeconds["synthetic workers"] = (ProcessTimes(of: "self")?.own ?? 0) - ownCPU
        sample.facts = try await fleet.database.since(written).facts(per: count, unit: "chunk")
        sample.facts["sync p99 ms"] = Statistics(tally.syncSeconds).percentile(0.99).map { $0 * 1_000 }
        return sample
    }
}
