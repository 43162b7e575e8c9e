import ArgumentParser

/// `muster-bench distance`: small and large files from far away, over connections that lose packets.
struct DistanceCommand: Benchmark {
    static let configuration = CommandConfiguration(
        commandName: "distance",
        abstract: "Small and large files from an origin that is far away, and with a coordinator that is far away too.",
        discussion: """
            A proxy passes bytes on later, each connection at the rate that TCP keeps to where so many packets are lost \
            (the formula of Mathis and others). What losses do to a connection that has just begun is not shown.
            """)

    @Option(name: .customLong("round-trip"), help: ArgumentHelp("Until an answer is there.", valueName: "ms"))
    var roundTrip = 50

    @Option(help: ArgumentHelp("Packets that are lost, of a thousand.", valueName: "n"))
    var loss = 10

    @Option(help: ArgumentHelp("How many small files. (default: 1000, with --quick 40)", valueName: "n"))
    var count: Int?

    @Option(help: ArgumentHelp("MiB of each of two large files. (default: 16, with --quick 1)", valueName: "MiB"))
    var size: Int64?

    @OptionGroup var common: BenchOptions

    func validate() throws {
        guard (1...1_000).contains(roundTrip) else { throw ValidationError("--round-trip is 1 to 1000") }
        guard (0...500).contains(loss) else { throw ValidationError("--loss is 0 to 500") }
    }

    func measure(_ bench: Bench) async throws -> [Section] {
        let distance = Distance(roundTrip: .milliseconds(roundTrip), loss: Double(loss) / 1_000)
        let count = count ?? (bench.isQuick ? 40 : 1_000)
        let mebibytes = size ?? (bench.isQuick ? 1 : 16)
        let small = try await OriginFiles(bench, count: count, size: 16 << 10, distance: distance)
        let large = try await OriginFiles(bench, count: 2, size: mebibytes << 20, distance: distance)
        var sections: [Section] = []
        for coordinator in [nil, Distance(roundTrip: .milliseconds(roundTrip))] {
            let ending = coordinator == nil ? "" : "-coordinator"
            let place =
                ", \(roundTrip) ms and \(Double(loss) / 10) % of loss"
                + (coordinator == nil ? "" : ", coordinator \(roundTrip) ms away")
            let contests = [
                TransferContest(
                    name: "distance-small\(ending)",
                    title: "\(Figure.count(count)) files of 16,384 bytes, one worker\(place)", unit: "files/s",
                    units: Double(count), files: small, slots: 64,
                    variants: [.init(name: "muster", cap: nil), .init(name: "muster, cap 64", cap: 64)],
                    peers: Peer.installed(Peer.forSmallFiles), bare: (connections: 64, ranges: 1),
                    coordinator: coordinator),
                TransferContest(
                    name: "distance-large\(ending)", title: "2 files of \(mebibytes) MiB, one worker\(place)",
                    unit: "MiB/s", units: Double(large.totalBytes) / 1_048_576, files: large, slots: 16,
                    variants: [.init(name: "muster", cap: nil)], peers: Peer.installed(Peer.forLargeFiles),
                    bare: (connections: 8, ranges: 4), coordinator: coordinator),
            ]
            for contest in contests { sections.append(try await contest.run(bench)) }
        }
        return sections
    }
}
