import ArgumentParser
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage

/// `muster-bench soak`: many groups of small files, one after the other, and how a fleet performs over time.
struct SoakCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "soak",
        abstract: "Groups of small files for a long time: speed, memory and the size of the database over time.")

    @Option(help: ArgumentHelp("How many files altogether. (default: 2000000, with --quick 400)", valueName: "n"))
    var files: Int?

    @Option(help: ArgumentHelp("Files of each group. (default: 20000, with --quick 100)", valueName: "n"))
    var group: Int?

    @Option(help: ArgumentHelp("Bytes of each.", valueName: "bytes"))
    var size: Int64 = 1_024

    @Option(help: ArgumentHelp("How many groups of files are kept; the eldest is removed.", valueName: "n"))
    var keep = 3

    @OptionGroup var common: BenchOptions

    func validate() throws {
        guard (1...100_000).contains(group ?? 1) else { throw ValidationError("--group is 1 to 100000") }
        guard (1...1_000_000_000).contains(files ?? 1) else { throw ValidationError("--files is 1 to 1000000000") }
        guard (1...1_000).contains(keep) else { throw ValidationError("--keep is 1 to 1000") }
    }

    func measure(_ bench: Bench) async throws -> [Section] {
        let each = group ?? (bench.isQuick ? 100 : 20_000)
        let groups = max((files ?? (bench.isQuick ? 400 : 2_000_000)) / each, 2)
        let origin = try await OriginFiles(bench, count: each, size: size)
        return try await BenchFleet.withPostgres(bench) { postgres in
            try await BenchFleet.run(bench, on: postgres) { fleet in
                _ = try await fleet.client.setOrigin(origin.url, OriginPatch(maxConnections: .set(64)))
                try await fleet.startWorker("worker", slots: 64)
                var samples: [Sample] = []
                for number in 0..<groups {
                    let sample = try await fetch(number, origin, by: fleet)
                    samples.append(sample)
                    bench.say(
                        "soak: group \(number + 1) of \(groups): \(Figure.text(sample.value)) files/s, \(sample.text)")
                    if number >= keep {
                        let eldest = "soak-\(number - keep)"
                        _ = try await fleet.client.removeGroup(eldest)
                        try Bench.remove(fleet.sink.appending(eldest))
                    }
                }
                return [Self.section(samples, each: each, size: size, keep: keep)]
            }
        }
    }

    private func fetch(_ number: Int, _ origin: OriginFiles, by fleet: BenchFleet) async throws -> Sample {
        let name = "soak-\(number)"
        let meter = await fleet.meter()
        let (written, cpu) = (try await fleet.database.read(), meter.cpuSeconds())
        meter.resetPeaks()
        let outcome = try await fleet.add(name, manifest: origin.manifest(below: name))
        try Bench.check(fleet.sink.appending(name), files: origin.names.count, size: origin.size)
        var sample = Sample(
            value: Double(origin.names.count) / outcome.seconds,
            cpuSeconds: ProcessMeter.difference(meter.cpuSeconds(), cpu), peakMebibytes: meter.peakMebibytes())
        sample.facts = try await fleet.database.since(written).facts(per: origin.names.count, unit: "file")
        sample.facts["database MiB"] = try await fleet.database.size() / 1_048_576
        return sample
    }

    /// Compares the first tenth of the groups with each further tenth.
    private static func section(_ samples: [Sample], each: Int, size: Int64, keep: Int) -> Section {
        let parts = min(10, samples.count)
        let rows = (0..<parts).map { part in
            let range = part * samples.count / parts..<(part + 1) * samples.count / parts
            return Row(
                subject: "files to \(Figure.count(range.upperBound * each))", role: part == 0 ? .baseline : .muster,
                samples: Array(samples[range]))
        }
        return Section(
            name: "soak",
            title: "\(Figure.count(samples.count)) groups of \(Figure.count(each)) files of \(size) bytes",
            unit: "files/s", better: .higher, rows: rows, notes: ["\(keep) finished groups are kept"])
    }
}

extension Sample {
    /// Memory and sizes, in one line.
    fileprivate var text: String {
        let memory = peakMebibytes.sorted { $0.key < $1.key }.map { "\($0.key) \(Figure.text($0.value)) MiB" }
        return (memory + ["database \(Figure.text(facts["database MiB"] ?? 0)) MiB"]).joined(separator: ", ")
    }
}
