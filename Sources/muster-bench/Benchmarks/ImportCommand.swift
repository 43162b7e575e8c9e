import ArgumentParser
import MusterAPI
import MusterPostgres
import MusterTestSupport

/// `muster-bench import`: how fast tasks are added to groups.
struct ImportCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Manifests by muster add, and groups with their tasks in one request.")

    @Option(help: ArgumentHelp("Lines of the large manifest. (default: 100000, with --quick 2000)", valueName: "n"))
    var lines: Int?

    @Option(help: ArgumentHelp("Clients that make groups at the same time.", valueName: "n"))
    var clients = 4

    @OptionGroup var common: BenchOptions

    func measure(_ bench: Bench) async throws -> [Section] {
        let lines = lines ?? (bench.isQuick ? 2_000 : 100_000)
        return try await BenchFleet.withPostgres(bench) { postgres in
            let made = try await postgres.makeDatabase()
            let copy = try await PostgresConnection.open(PostgresConfiguration(made.conninfo))
            try await copy.simple("CREATE TABLE bare (group_name text, url text, path text, size bigint)")
            let sections = try await BenchFleet.run(bench, on: postgres) { fleet in
                [
                    try await manifests(fleet, lines: lines, copy: copy).run(bench),
                    try await commands(fleet).run(bench),
                    try await requests(fleet, tasks: 1_000, groups: bench.isQuick ? 2 : 20).run(bench),
                    try await requests(fleet, tasks: 20, groups: bench.isQuick ? 4 : 200).run(bench),
                ]
            }
            await copy.close()
            return sections
        }
    }

    /// One large manifest, beside a bare COPY of the same lines' values.
    private func manifests(_ fleet: BenchFleet, lines: Int, copy: PostgresConnection) -> Contest {
        let load = SyntheticLoad(client: fleet.client)
        return Contest(
            name: "import", title: "muster add of a manifest of \(Figure.count(lines)) lines", unit: "lines/s",
            better: .higher,
            contestants: [
                Contestant(name: "muster add", role: .muster) { turn in
                    let group = "lines-\(turn)"
                    let manifest = (0..<lines).map { load.line($0, of: group) }.joined()
                    let meter = await fleet.meter()
                    let written = try await fleet.database.read()
                    let cpu = meter.cpuSeconds()
                    meter.resetPeaks()
                    let outcome = try await fleet.add(group, manifest: manifest, options: [])
                    var sample = Sample(
                        value: Double(lines) / outcome.seconds,
                        cpuSeconds: ProcessMeter.difference(meter.cpuSeconds(), cpu),
                        peakMebibytes: meter.peakMebibytes(),
                        facts: try await fleet.database.since(written).facts(per: lines, unit: "line"))
                    sample.cpuSeconds["client"] = outcome.cpuSeconds
                    _ = try await fleet.client.removeGroup(group)
                    return sample
                },
                Contestant(name: "bare COPY", role: .floor) { turn in
                    let begin = ContinuousClock.now
                    let count = try await copy.copyIn(
                        into: "bare", columns: ["group_name", "url", "path", "size"], deadline: .now + .seconds(600)
                    ) { writer in
                        for index in 0..<lines {
                            try await writer.write(
                                "lines-\(turn)", "http://127.0.0.1:1/lines-\(turn)/\(index)",
                                "lines-\(turn)/\(index)", Int64(16_384))
                        }
                    }
                    return Sample(value: Double(count) / (ContinuousClock.now - begin).seconds)
                },
            ])
    }

    /// Small manifests, with a process for each.
    private func commands(_ fleet: BenchFleet) -> Contest {
        let load = SyntheticLoad(client: fleet.client)
        return Contest(
            name: "import-commands", title: "muster add of 100 lines, one after the other", unit: "commands/s",
            better: .higher,
            contestants: [
                Contestant(name: "muster add", role: .muster) { turn in
                    let groups = (0..<5).map { "add-\(turn)-\($0)" }
                    let begin = ContinuousClock.now
                    var cpu = 0.0
                    for group in groups {
                        let manifest = (0..<100).map { load.line($0, of: group) }.joined()
                        cpu += try await fleet.add(group, manifest: manifest, options: []).cpuSeconds
                    }
                    let seconds = (ContinuousClock.now - begin).seconds
                    for group in groups { _ = try await fleet.client.removeGroup(group) }
                    return Sample(value: Double(groups.count) / seconds, cpuSeconds: ["client": cpu])
                }
            ])
    }

    /// Groups that are created together with their tasks in one request.
    private func requests(_ fleet: BenchFleet, tasks: Int, groups: Int) -> Contest {
        let load = SyntheticLoad(client: fleet.client)
        return Contest(
            name: "import-requests-\(tasks)",
            title: "POST /v1/groups with \(Figure.count(tasks)) tasks, by \(clients) clients",
            unit: "requests/s", better: .higher,
            contestants: [
                Contestant(name: "muster", role: .muster) { turn in
                    let names = (0..<groups).map { "post-\(tasks)-\(turn)-\($0)" }
                    let meter = await fleet.meter()
                    let cpu = meter.cpuSeconds()
                    let begin = ContinuousClock.now
                    try await load.create(names, count: tasks, atOnce: clients)
                    let seconds = (ContinuousClock.now - begin).seconds
                    let sample = Sample(
                        value: Double(groups) / seconds,
                        cpuSeconds: ProcessMeter.difference(meter.cpuSeconds(), cpu))
                    for name in names { _ = try await fleet.client.removeGroup(name) }
                    return sample
                }
            ])
    }
}
