import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCurl
@testable import MusterWorker

/// Answers of origins, where two readers have to agree.
@Suite struct AnswerFuzzTests {
    @Test func lengthOfABodyIsTheOneThatLibcurlCounts() throws {
        let corpus = [
            "Content-Length: 12\r\n", "content-length: 7, 7\r\n", "Content-Length: +5\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: identity\r\nContent-Length: 9\r\n", "Content-Length: 3\r\n 4\r\nX: y\r\n",
        ]
        try ByteFuzzer(corpus).run { input in
            var head = HeadCollector(followsRedirects: false, limitBytes: 1 << 20)
            let lines = ["HTTP/1.1 200 OK"] + input.text.split(separator: "\r\n").map { String($0) }
            for line in lines {
                let event = Array(line.utf8).withUnsafeBytes { head.take($0) }
                if case .violation = event { return false }
            }
            let fields = head.headers.fields.map { (name: $0.name, value: $0.value) }
            let facts = ResponseFacts(status: head.status, headers: fields)
            guard let stated = try? facts.contentLength() else { return false }
            guard case .contentLength(let counted) = head.framing(isHead: false) else { return false }
            try input.expect(stated == counted, "\(counted) bytes are counted, and \(stated) are stated")
            return true
        }
    }

    /// The worker's own reading of a host decides what a proxy is asked for; libcurl's decides what is asked (range contract, row 39).
    @Test func proxyIsAskedForNoAddressThatLibcurlReadsAsPrivate() throws {
        let corpus = [
            "http://127.0.0.1/f", "http://0177.0.0.1/f", "http://2130706433/", "http://[::1]:80/", "//10.0.0.1/x",
            "http://[::ffff:10.0.0.1]/", "http://user@10.0.0.1/", "http://example.org\\@127.0.0.1/",
            "http://%31%32%37.0.0.1/", "http://127.0.0.%31/", "https://example.org/", "http:/127.0.0.1/a://e.org/",
            "http://169.254.169.254./latest", "http://0x7f.1/",
        ]
        let rule = AddressGuard(refusesPrivate: true)
        try ByteFuzzer(corpus).run { input in
            // A redirect, as the guard is asked for it.
            guard !input.bytes.contains(0),
                let url = URLOrigin.absolute(input.text, relativeTo: "http://example.org/a"),
                let origin = URLOrigin(url), ["http", "https"].contains(origin.scheme)
            else { return false }
            let host = origin.host.hasPrefix("[") ? String(origin.host.dropFirst().dropLast()) : origin.host
            // A text that is no address is a name, which is resolved before a proxy is asked for it.
            guard AddressRange(host) != nil, !rule.allows(host) else { return false }
            guard let mine = URLHost(of: url) else { return true }
            try input.expect(
                !mine.isAllowed(by: rule) || !mine.isAddress && !mine.mayBePublic,
                "libcurl asks for \(host), and \(mine.name) is allowed")
            return true
        }
    }

    @Test(arguments: ContentCoding.allCases) func decodedContentDoesNotDependOnItsPieces(coding: ContentCoding) throws {
        let samples = CodedText.all + CodedText.zeros
        let corpus = samples.filter { $0.coding == coding }.map { $0.bytes }
        try ByteFuzzer(bytes: corpus).run { input in
            let (whole, pieces) = (Self.decoded([input.bytes], coding), Self.decoded(input.pieces, coding))
            // A piece of 256 KiB may go beyond the limit.
            let most = max(whole.bytes.count, pieces.bytes.count)
            try input.expect(most <= Self.limitBytes + 256 << 10, "\(most) bytes are decoded")
            guard !whole.isBroken, !pieces.isBroken else { return false }
            try input.expect(whole.isComplete == pieces.isComplete, "one of both is complete")
            // As long as the end has not come, the decoder may hold back some bytes.
            let (less, more) = whole.bytes.count < pieces.bytes.count ? (whole, pieces) : (pieces, whole)
            try input.expect(more.bytes.starts(with: less.bytes), "the pieces have other bytes")
            try input.expect(!whole.isComplete || less.bytes.count == more.bytes.count, "some bytes are missing")
            return whole.isComplete
        }
    }

    private static let limitBytes = 1 << 20

    private struct Decoded {
        var bytes: [UInt8] = []
        var isComplete = false
        /// Whether the content is malformed, or has more bytes than are wanted.
        var isBroken = false
    }

    private static func decoded(_ pieces: [[UInt8]], _ coding: ContentCoding) -> Decoded {
        let decoder = ContentDecoder(coding)
        var decoded = Decoded()
        for piece in pieces {
            do {
                try piece.withUnsafeBytes { bytes in
                    try decoder.decode(bytes) { part in
                        decoded.bytes.append(contentsOf: part)
                        decoded.isBroken = decoded.bytes.count > limitBytes
                        return !decoded.isBroken
                    }
                }
            } catch {
                decoded.isBroken = true
            }
            if decoded.isBroken { return decoded }
        }
        decoded.isComplete = decoder.isComplete
        return decoded
    }
}
