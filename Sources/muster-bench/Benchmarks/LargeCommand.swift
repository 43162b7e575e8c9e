import ArgumentParser

/// `muster-bench large`: a few large files.
struct LargeCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "large", abstract: "A few large files from one origin, from submission to the group's end.")

    @Option(help: ArgumentHelp("How many files.", valueName: "n"))
    var count = 2

    @Option(help: ArgumentHelp("MiB of each. (default: 1024, with --quick 16)", valueName: "MiB"))
    var size: Int64?

    @OptionGroup var common: BenchOptions

    func measure(_ bench: Bench) async throws -> [Section] {
        let mebibytes = size ?? (bench.isQuick ? 16 : 1_024)
        // One content under all names: its use of memory and storage is not measured.
        let files = try await OriginFiles(bench, count: count, size: mebibytes << 20, isShared: true)
        let contest = TransferContest(
            name: "large", title: "\(count) files of \(mebibytes) MiB, one worker", unit: "MiB/s",
            units: Double(files.totalBytes) / 1_048_576, files: files, slots: 16,
            variants: [.init(name: "muster", cap: nil)], peers: Peer.installed(Peer.forLargeFiles),
            bare: (connections: 4 * count, ranges: 4))
        return [try await contest.run(bench)]
    }
}
