import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage

/// A contest in which Muster, its peers and a bare libcurl loop fetch the same files in turns.
struct TransferContest: Sendable {
    /// A way in which Muster is run.
    struct Variant: Sendable {
        /// Its name in the report.
        var name: String
        /// The most connections to the origin; nil is Muster's default.
        var cap: Int32?
    }

    /// The name of the section.
    var name: String
    /// What is measured.
    var title: String
    /// The unit of the figures.
    var unit: String
    /// The number of units in a job.
    var units: Double
    /// What is fetched, and from where.
    var files: OriginFiles
    /// The worker's slots.
    var slots: Int
    /// The ways in which Muster is run.
    var variants: [Variant]
    /// The installed peers, and notes about the missing ones.
    var peers: (peers: [Peer], notes: [String])
    /// How the bare loop fetches: transfers at once, and ranges of a file.
    var bare: (connections: Int, ranges: Int)
    /// How far away from the worker the coordinator is.
    var coordinator: Distance?

    /// Runs the contest.
    func run(_ bench: Bench) async throws -> Section {
        let scratch = try bench.directory()
        let job = try FetchJob(files, scratch: scratch.path)
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres) { fleet in
                let path = try await coordinator?.path(to: fleet.port)
                try await fleet.startWorker("worker", slots: slots, server: path?.url)
                var contestants = variants.map { variant in
                    Contestant(name: variant.name, role: .muster) { turn in
                        try await fetch(by: fleet, variant, turn: turn)
                    }
                }
                contestants += peers.peers.map { peer in
                    Contestant(name: peer.name, role: .peer) { turn in
                        rate(try await peer.run(bench, job, in: scratch.path, turn: turn))
                    }
                }
                contestants.append(
                    Contestant(name: "bare libcurl loop", role: .floor) { turn in
                        rate(try await fetchBare(bench, job, in: scratch.path.appending("bare-\(turn)")))
                    })
                let contest = Contest(
                    name: name, title: title, unit: unit, better: .higher, contestants: contestants,
                    notes: peers.notes)
                return try await contest.run(bench)
            }
        }
    }

    /// The sample with a throughput in place of seconds.
    private func rate(_ sample: Sample) -> Sample {
        var sample = sample
        sample.value = units / sample.value
        return sample
    }

    private func fetchBare(_ bench: Bench, _ job: FetchJob, in directory: FilePath) async throws -> Sample {
        try await Peer.run(
            bench, bench.own,
            commands: { target in
                [
                    [
                        "bare-transfers", "--list", job.urlList.string, "--into", target.string, "--connections",
                        "\(bare.connections)", "--ranges", "\(bare.ranges)", "--size", "\(job.size)",
                    ]
                ]
            }, job, in: directory)
    }

    /// Measures from the start of `muster add` to its end, which is the end of the group: every file is verified, durable and recorded by then.
    private func fetch(by fleet: BenchFleet, _ variant: Variant, turn: Int) async throws -> Sample {
        _ = try await fleet.client.setOrigin(
            files.url, OriginPatch(maxConnections: variant.cap.map { .set($0) } ?? .clear))
        let group = "\(name)-\(turn)-\(variant.cap ?? 0)"
        let meter = await fleet.meter([("origin", files.server.processIDs[0])])
        meter.resetPeaks()
        let written = try await fleet.database.read()
        let cpu = meter.cpuSeconds()
        let outcome = try await fleet.add(group, manifest: files.manifest(below: group))
        var sample = Sample(
            value: outcome.seconds, cpuSeconds: ProcessMeter.difference(meter.cpuSeconds(), cpu),
            peakMebibytes: meter.peakMebibytes())
        sample.cpuSeconds["client"] = outcome.cpuSeconds
        sample.facts = try await fleet.database.since(written).facts(per: files.names.count, unit: "file")
        let target = fleet.sink.appending(group)
        try Bench.check(target, files: files.names.count, size: files.size)
        try Bench.clear(target, files: files.names.count, size: files.size)
        _ = try await fleet.client.removeGroup(group)
        return rate(sample)
    }
}
