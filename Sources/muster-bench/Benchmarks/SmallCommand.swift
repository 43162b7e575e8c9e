import ArgumentParser

/// `muster-bench small`: many small files.
struct SmallCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "small", abstract: "Many small files from one origin, from submission to the group's end.")

    @Option(help: ArgumentHelp("How many files. (default: 3000, with --quick 40)", valueName: "n"))
    var count: Int?

    @Option(help: ArgumentHelp("Bytes of each.", valueName: "bytes"))
    var size: Int64 = 16 << 10

    @OptionGroup var common: BenchOptions

    func measure(_ bench: Bench) async throws -> [Section] {
        let count = count ?? (bench.isQuick ? 40 : 3_000)
        let files = try await OriginFiles(bench, count: count, size: size)
        let contest = TransferContest(
            name: "small",
            title: "\(Figure.count(count)) files of \(Figure.count(Int(size))) bytes, one worker",
            unit: "files/s", units: Double(count), files: files, slots: 64,
            variants: [.init(name: "muster", cap: nil), .init(name: "muster, cap 64", cap: 64)],
            peers: Peer.installed(Peer.forSmallFiles), bare: (connections: 64, ranges: 1))
        return [try await contest.run(bench)]
    }
}
