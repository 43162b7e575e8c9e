import MusterTestSupport

/// Many files, of which the largest have several chunks, and an origin that is slow enough for faults to hit it.
struct Load {
    let origin: ScriptedOrigin
    let files: [WantedFile]
    let total: Int64

    init(_ random: inout SeededGenerator) async throws {
        origin = try await ScriptedOrigin.start()
        let sizes = (0..<40).map { index in
            index % 8 == 0
                ? Int64.random(in: .mebibytes(1) ... .mebibytes(3), using: &random)
                : Int64.random(in: 0...Int64.kibibytes(200), using: &random)
        }
        total = sizes.reduce(0, +)
        files = origin.serveFiles("f", sizes: sizes, seed: random.next())
        origin.limitRate(bytesPerSecond: 512 << 10)
    }

    /// The bytes that were sent of all files.
    var sent: Int64 { origin.requests.reduce(0) { $0 + $1.bodyBytesSent } }

    /// Waits until a random share of all bytes was sent.
    func waitForShare(from lower: Double, to upper: Double, _ random: inout SeededGenerator) async throws {
        let bytes = Int64(Double(total) * Double.random(in: lower...upper, using: &random))
        try await eventually("\(bytes) of \(total) bytes sent") { sent >= bytes }
    }

    /// Lets the rest come at full speed.
    func hurry() { origin.limitRate(bytesPerSecond: nil) }
}
