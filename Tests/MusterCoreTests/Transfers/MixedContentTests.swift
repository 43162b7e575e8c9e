import MusterCore
import MusterTestSupport
import Testing

/// Two nodes serve different contents of the same size under one URL (range contract, rows 6, 8, 9 and 29). Bytes of the second are
/// never appended to bytes of the first, unless a strong validator says that the contents are the same.
@Suite struct MixedContentTests {
    /// What a node states about its content.
    private struct Node {
        var etag: String?
        var lastModified: String?
        var date: String?

        init(using random: inout SeededGenerator) {
            etag = [nil, "\"a\"", "\"b\"", "W/\"a\"", "W/\"b\""].randomElement(using: &random) ?? nil
            lastModified =
                [nil, "Sun, 01 Mar 2026 12:00:00 GMT", "Mon, 02 Mar 2026 12:00:00 GMT"].randomElement(using: &random)
                ?? nil
            // None, late enough for a strong Last-Modified, or too early.
            date =
                [nil, "Tue, 03 Mar 2026 12:00:00 GMT", "Sun, 01 Mar 2026 12:00:30 GMT"].randomElement(using: &random)
                ?? nil
        }

        func facts(_ status: Int, _ fields: [(name: String, value: String)]) -> ResponseFacts {
            let stated = [("ETag", etag), ("Last-Modified", lastModified), ("Date", date)]
            return ResponseFacts(
                status: status,
                headers: fields + stated.compactMap { name, value in value.map { (name: name, value: $0) } })
        }
    }

    /// Whether a strong validator says that both contents are the same (RFC 9110 §8.8.2.2, §8.8.3.2).
    private func isToldTheSame(_ known: Representation, _ other: Representation) -> Bool {
        if let tag = known.strongETag { return tag == other.strongETag }
        return known.lastModified == other.lastModified && known.isDateStrong == true && other.isDateStrong == true
    }

    @Test func bytesOfAnotherNodeAreNeverAppendedToThoseOfTheFirst() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededGenerator(seed: seed)
        var taken = 0
        for _ in 0..<20_000 {
            let (first, second) = (Node(using: &random), Node(using: &random))
            let known = first.facts(200, []).representation(size: 1_000)
            guard known.tellsVersions else { continue }
            let isPart = Bool.random(using: &random)
            let isAskedForPart = isPart || Bool.random(using: &random)
            let fields = isPart ? [(name: "Content-Range", value: "bytes 100-999/1000")] : []
            let length = [(name: "Content-Length", value: isPart ? "900" : "1000")]
            let facts = second.facts(
                isPart ? 206 : 200, fields + (Int.random(in: 0..<4, using: &random) > 0 ? length : []))
            let question = FetchQuestion(
                range: isAskedForPart ? ByteRange(start: 100, end: 1_000) : nil,
                conditional: isAskedForPart && Bool.random(using: &random), planned: true, known: known, kept: 100)
            guard case .accept(let body) = ResponseVerdict.judge(facts, to: question) else { continue }
            #expect(body.offset + body.skipped == 100)
            #expect(
                isToldTheSame(known, facts.representation(size: 1_000)),
                "seed \(seed): \(first) is continued by \(second), asked \(question)")
            taken += 1
        }
        #expect(taken > 100, "seed \(seed)")
    }
}
