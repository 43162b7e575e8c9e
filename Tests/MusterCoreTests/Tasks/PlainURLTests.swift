import MusterCore
import MusterTestSupport
import Testing

/// Plain URLs are read by a fast path, with the same result as by the full parser.
struct PlainURLTests {
    private static func read(_ text: String) -> [String]? {
        guard let url = try? SourceURL(validating: text) else { return nil }
        return [url.origin, url.path]
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func fastPathReadsWhatTheFullParserReads(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let pieces = [
            "a", "example.org", "127.0.0.1", ".", "-", "..", ":", "80", "0", "00080", "65535", "65536", "/", "//", "_",
            "A",
            "b.tar", "%20", "%", "?q=1", "#f", "@", "x:y", "~", "é", "[::1]", "1.2.3.4.5",
        ]
        for _ in 0..<4_000 {
            let rest = (0..<Int.random(in: 0...6, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .joined()
            let scheme = ["http", "https"].randomElement(using: &random)!
            // A scheme in capitals is not plain, so the full parser reads it.
            #expect(
                Self.read("\(scheme)://\(rest)") == Self.read("\(scheme.uppercased())://\(rest)"),
                "seed \(seed): \(rest)")
        }
    }
}
