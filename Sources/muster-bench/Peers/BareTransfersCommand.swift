import ArgumentParser
import FoundationEssentials
import MusterCurl
import SystemPackage

/// The floor of what fetching costs: one libcurl loop that writes the received bytes, and nothing else. It is a separate process, so that
/// its CPU and memory can be measured like those of other programs.
struct BareTransfersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bare-transfers", abstract: "Fetches a list of URLs by a bare libcurl loop.", shouldDisplay: false)

    @Option(help: "A file with a URL per line.")
    var list: String

    @Option(help: "Where the files go.")
    var into: String

    @Option(help: "Transfers at once.")
    var connections: Int

    @Option(help: "Into how many ranges each file is cut.")
    var ranges = 1

    @Option(help: "How many bytes each file has; needed for ranges.")
    var size: Int64 = 0

    func run() async throws {
        let text = try String(contentsOf: URL(filePath: list), encoding: .utf8)
        var pieces: [BareLoop.Piece] = []
        for url in text.split(separator: "\n") {
            let name = url.split(separator: "/").last.map { String($0) } ?? "file"
            let file = BareLoop.File(path: FilePath(into).appending(name))
            for index in 0..<Int64(max(ranges, 1)) {
                let first = size * index / Int64(max(ranges, 1))
                let range = ranges > 1 ? RangeSpec(first: first, last: size * (index + 1) / Int64(ranges) - 1) : nil
                pieces.append(BareLoop.Piece(url: String(url), file: file, first: first, range: range))
            }
        }
        let loop = try BareLoop(pieces, connections: connections)
        try await loop.run()
    }
}
