import MusterCore
import MusterTestSupport
import Testing

struct ResponseVerdictTests {
    @Test(
        arguments: OriginRow.ranges + OriginRow.bodies + OriginRow.contents + OriginRow.mirrors + OriginRow.ends
            + OriginRow.wholes)
    func originIsAnsweredByItsRow(row: OriginRow) {
        let verdict = ResponseVerdict.judge(row.facts, to: row.question)
        #expect(Outcome(verdict) == row.outcome, "\(verdict)")
    }

    @Test func acceptedBodyCarriesItsRepresentation() throws {
        let facts = ResponseFacts(
            status: 206,
            headers: [
                (name: "Content-Range", value: "bytes 0-99/1000"), (name: "ETag", value: "\"v1\""),
                (name: "Last-Modified", value: "Sun, 01 Mar 2026 12:00:00 GMT"),
            ]
        )
        guard case .accept(let body) = ResponseVerdict.judge(facts, to: .first) else {
            Issue.record("was not accepted")
            return
        }
        #expect(
            body.representation
                == Representation(size: 1_000, etag: "\"v1\"", lastModified: "Sun, 01 Mar 2026 12:00:00 GMT")
        )
    }

    /// If a whole body is certainly the same content, the bytes after the kept ones are taken from it. Any other whole body is a change.
    @Test(
        arguments: [
            (["ETag: \"v1\""], true), (["Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT"], false),
            (["ETag: W/\"v1\""], false), (["ETag: \"v1\"", "Content-Encoding: gzip"], false),
        ] as [([String], Bool)])
    func wholeBodyContinuesTheKeptBytesIfItIsCertainlyTheSame(headers: [String], isTaken: Bool) {
        let known = Representation(
            size: 1_000, etag: "\"v1\"", lastModified: "Sun, 01 Mar 2026 12:00:00 GMT", isDateStrong: true)
        let question = FetchQuestion(range: nil, planned: true, known: known, kept: 100)
        let outcome = isTaken ? Outcome.accept(offset: 0, count: 1_000, splittable: false) : .refuse(.changed)
        let row = OriginRow(1, "", 200, ["Content-Length: 1000"] + headers, to: question, outcome)
        let verdict = ResponseVerdict.judge(row.facts, to: question)
        #expect(Outcome(verdict) == outcome)
        if case .accept(let body) = verdict { #expect(body.offset == 0 && body.skipped == 100) }
    }

    @Test(
        arguments: [
            (["Retry-After: 120"], 120), (["Retry-After: 7200"], 3_600), ([], nil),
            (["Date: Sun, 01 Mar 2026 12:00:00 GMT", "Retry-After: Sun, 01 Mar 2026 12:05:00 GMT"], 300),
        ] as [([String], Int64?)]
    )
    func refusedStatusCarriesRetryAfterByRow25(headers: [String], seconds: Int64?) {
        let row = OriginRow(25, "asks to wait", 503, headers, to: .first, .refuse(.httpStatus(503)))
        #expect(
            ResponseVerdict.judge(row.facts, to: row.question)
                == .refuse(.httpStatus(503), detail: "the origin answered 503", retryAfter: seconds)
        )
    }

    /// A wrong length of a refused answer changes nothing, since the body is not read.
    @Test func refusedStatusIsReportedDespiteAMalformedLength() {
        let headers = ["Content-Length: 5", "Transfer-Encoding: chunked", "Retry-After: 9"]
        let row = OriginRow(25, "asks to wait", 429, headers, to: .first, .refuse(.httpStatus(429)))
        guard case .refuse(.httpStatus(429), _, retryAfter: 9) = ResponseVerdict.judge(row.facts, to: row.question)
        else {
            Issue.record("the wish was lost")
            return
        }
    }

    /// Row 27: the plain GET of the file may lead elsewhere. So the body is examined, and a URL that may work only once is not asked again.
    @Test(
        arguments: [
            ("text/html; charset=utf-8", true, 5_000, true), ("text/plain", true, 5_000, true),
            ("application/problem+json", true, 500_000, true), ("application/xhtml+xml", true, nil, true),
            (nil, true, 5_000, true), (nil, true, nil, true), (nil, true, 100_000, false), (nil, false, 5_000, false),
            ("text/html", false, 5_000, false), ("application/zip", true, 5_000, true),
            ("application/zip", true, 100_000, false),
        ] as [(String?, Bool, Int64?, Bool)]
    )
    func pageThatARangeRequestIsRedirectedToIsTakenAndDoubted(
        type: String?, isRedirected: Bool, size: Int64?, isDoubted: Bool
    ) {
        let fields = type.map { [(name: "Content-Type", value: $0)] } ?? []
        let length = size.map { [(name: "Content-Length", value: "\($0)")] } ?? []
        let facts = ResponseFacts(status: 200, headers: fields + length, isRedirected: isRedirected)
        #expect(facts.mayBePageElsewhere(size: size) == isDoubted)
        #expect(
            Outcome(ResponseVerdict.judge(facts, to: .first)) == .accept(offset: 0, count: size, splittable: false))
        // A body without a length is doubted if a size is expected, since another size would fail the file at its end.
        guard size == nil else { return }
        let question = FetchQuestion(
            range: FetchQuestion.first.range, planned: false, known: Representation(), expectedSize: 700_000)
        #expect(
            Outcome(ResponseVerdict.judge(facts, to: question))
                == (isDoubted ? .descend(.whole) : .accept(offset: 0, count: nil, splittable: false)))
    }

    /// Row 27: what a source stated about an abandoned version still counts.
    @Test(
        arguments: [
            (500, [], true), (nil, [], false), (1_000, [], false), (500, ["ETag: \"b\""], false),
            (500, ["Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT"], true),
            (500, ["Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT", "Date: Sun, 01 Mar 2026 12:02:00 GMT"], false),
            (500, ["Content-Type: application/zip"], true),
            (5_000, ["Content-Type: text/plain"], false), (5_000, ["Content-Type: text/html"], true),
            (nil, ["Content-Type: application/zip"], false),
        ] as [(Int64?, [String], Bool)]
    )
    func smallerWholeWithoutAValidatorIsNoNewVersion(
        size: Int64?, headers: [String], isRefused: Bool
    ) {
        let question = FetchQuestion(
            range: nil, planned: false, known: Representation(), earlier: EarlierVersion(size: 1_000))
        let headers = headers + (size.map { ["Content-Length: \($0)"] } ?? ["Transfer-Encoding: chunked"])
        let row = OriginRow(27, "a page after a cut", 200, headers, to: question, .refuse(.network))
        #expect((Outcome(ResponseVerdict.judge(row.facts, to: question)) == .refuse(.network)) == isRefused)
    }

    /// Row 27: the same holds for an answer that says that it is a part, whatever the request was.
    @Test(
        arguments: [
            ("0-", ["Content-Range: bytes */0"], 0), ("0-", ["Content-Range: bytes 0-27/28"], 28),
            ("0-499", ["Content-Range: bytes 0-27/28"], 28), (nil, [], 0), (nil, [], 28),
            (nil, ["Content-Range: bytes */0"], 0),
            (nil, ["Content-Range: bytes 0-27/28"], 28),
        ] as [(String?, [String], Int)])
    func smallerPartWithoutAValidatorIsNoNewVersion(
        range: String?, headers: [String], length: Int
    ) throws {
        let asked = try range.map { try #require(ByteRange(start: 0, end: $0 == "0-" ? Int64.max : 500)) }
        let question = FetchQuestion(
            range: asked, planned: false, known: Representation(), earlier: EarlierVersion(size: 1_000))
        let row = OriginRow(
            27, "a part after a cut", 206, headers + ["Content-Length: \(length)"], to: question, .refuse(.network))
        #expect(Outcome(ResponseVerdict.judge(row.facts, to: question)) == .refuse(.network))
    }

    /// Row 27: a smaller body is another version only under another validator, or under one that tells versions apart if the earlier version
    /// had none.
    @Test(
        arguments: [
            (500, ["ETag: W/\"v\""], true), (500, ["ETag: \"v\""], false), (1_000, ["ETag: W/\"v\""], false),
            (2_000, ["ETag: W/\"v\""], false), (500, ["ETag: W/\"w\""], false), (500, ["ETag: \"w\""], false),
            (500, ["Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT"], false), (500, [], true),
        ] as [(Int64, [String], Bool)], [false, true])
    func smallerBodyUnderTheSameValidatorIsNoNewVersion(
        answer: (size: Int64, headers: [String], isDoubted: Bool), isPart: Bool
    ) {
        let size = answer.size
        var question = FetchQuestion(
            range: isPart ? ByteRange(start: 0, end: 10_000) : nil, planned: false, known: Representation(),
            earlier: EarlierVersion(size: 1_000, etag: "W/\"v\""))
        let part = isPart ? ["Content-Range: bytes 0-\(size - 1)/\(size)"] : []
        let headers = answer.headers + part + ["Content-Length: \(size)", "Date: Sun, 01 Mar 2026 13:00:00 GMT"]
        let row = OriginRow(27, "less", isPart ? 206 : 200, headers, to: question, .refuse(.network))
        #expect((Outcome(ResponseVerdict.judge(row.facts, to: question)) == .refuse(.network)) == answer.isDoubted)
        // An answer that repeats the validator until the last try is no passing fault. An answer without a validator may still be a page.
        question.isLastTry = true
        let isPage = answer.headers.isEmpty
        #expect((Outcome(ResponseVerdict.judge(row.facts, to: question)) == .refuse(.network)) == isPage)
    }

    /// Row 27: the same holds for an answer that repeats a strong tag, which a version with another size can't have (row 6). But a total that is one too
    /// large, in parts, is a known mistake of origins.
    @Test(arguments: [("\"v\"", 500, true), ("\"v\"", 998, true), ("\"v\"", 999, false), ("\"w\"", 500, false)])
    func smallerBodyUnderTheSameStrongTagIsNoNewVersion(etag: String, size: Int, isDoubted: Bool) {
        let question = FetchQuestion(
            range: nil, planned: false, known: Representation(), earlier: EarlierVersion(size: 1_000, etag: "\"v\""))
        let headers = ["ETag: \(etag)", "Content-Length: \(size)"]
        let row = OriginRow(27, "less", 200, headers, to: question, .refuse(.network))
        #expect((Outcome(ResponseVerdict.judge(row.facts, to: question)) == .refuse(.network)) == isDoubted)
    }

    /// Row 27: a mirror's validators say nothing about the version that another source had.
    @Test(
        arguments: [
            (500, ["ETag: W/\"v\""], true), (500, ["ETag: W/\"w\""], true), (500, ["ETag: \"v\""], false),
            (500, [], true), (1_000, [], nil), (2_000, ["ETag: W/\"w\""], nil),
        ] as [(Int64, [String], Bool?)])
    func smallerBodyAtAMirrorIsNoNewVersion(size: Int64, headers: [String], isDoubtedLast: Bool?) {
        var question = FetchQuestion(
            range: nil, planned: false, known: Representation(),
            earlier: EarlierVersion(source: 0, size: 1_000, etag: "W/\"v\""), source: 1)
        let row = OriginRow(27, "less", 200, headers + ["Content-Length: \(size)"], to: question, .refuse(.network))
        var outcome = Outcome(ResponseVerdict.judge(row.facts, to: question))
        #expect((outcome == .refuse(.network)) == (isDoubtedLast != nil))
        question.isLastTry = true
        outcome = Outcome(ResponseVerdict.judge(row.facts, to: question))
        #expect((outcome == .refuse(.network)) == (isDoubtedLast == true))
    }

    /// Row 27: if no size was stated, at least half of the bytes that had come are expected.
    @Test(arguments: [(0, true), (499, true), (500, false), (1_000, false), (5_000, false)])
    func wholeFarSmallerThanTheReceivedBytesIsNoNewVersion(size: Int64, isRefused: Bool) {
        let question = FetchQuestion(
            range: nil, planned: false, known: Representation(), earlier: EarlierVersion(bytes: 1_000))
        #expect((verdict(to: question, size: size, type: "text/html") == .refuse(.network)) == isRefused)
        #expect((ResponseVerdict.doubt(size, of: Representation(), isPage: true, question) != nil) == isRefused)
    }

    /// Row 27: a body without a validator, in place of content that has one, is another version if it is as large, or larger and no page.
    @Test(
        arguments: [
            (1_000_000, "application/zip", .refuse(.changed)), (1_000_000, nil, .refuse(.changed)),
            (2_000_000, "application/zip", .refuse(.changed)), (2_000_000, "text/html", .refuse(.network)),
            (2_000_000, "application/json", .refuse(.network)), (2_000_000, nil, .refuse(.network)),
            (500_000, "application/zip", .refuse(.network)), (nil, "application/zip", .refuse(.changed)),
            (nil, "text/html", .refuse(.network)),
        ] as [(Int64?, String?, Outcome)]
    )
    func wholeWithoutTheKnownValidatorsIsAnotherVersionUnlessItMayBeAPage(
        size: Int64?, type: String?, outcome: Outcome
    ) {
        let known = Representation(size: 1_000_000, etag: "\"a\"")
        let question = FetchQuestion(range: nil, planned: true, known: known)
        #expect(verdict(to: question, size: size, type: type) == outcome)
    }

    /// Row 10: a node that mistrusts If-Range may state no validators, and still serve the part.
    @Test func wholeWithoutTheKnownValidatorsIsAskedForWithoutACondition() throws {
        let range = try #require(ByteRange(start: 100, end: 200))
        let known = Representation(size: 1_000_000, etag: "\"a\"")
        var question = FetchQuestion(range: range, conditional: true, planned: true, known: known)
        #expect(verdict(to: question, size: 1_000_000, type: "application/zip") == .askUnconditionally)
        question = FetchQuestion(range: range, planned: true, known: known)
        #expect(verdict(to: question, size: 1_000_000, type: "application/zip") == .refuse(.changed))
    }

    /// Row 27: a version that was begun with a smaller size is continued.
    @Test(
        arguments: [(nil, .refuse(.network)), (500_000, .accept(offset: 0, count: 500_000, splittable: false))]
            as [(Int64?, Outcome)])
    func smallerVersionIsTakenWhereItIsKnown(known: Int64?, outcome: Outcome) {
        let question = FetchQuestion(
            range: nil, planned: false, known: Representation(size: known), earlier: EarlierVersion(size: 1_000_000))
        #expect(verdict(to: question, size: 500_000, type: "application/zip") == outcome)
    }

    private func verdict(to question: FetchQuestion, size: Int64?, type: String?) -> Outcome {
        var headers: [(name: String, value: String)] = [
            size.map { (name: "Content-Length", value: "\($0)") } ?? (name: "Transfer-Encoding", value: "chunked")
        ]
        if let type { headers.append((name: "Content-Type", value: type)) }
        return Outcome(ResponseVerdict.judge(ResponseFacts(status: 200, headers: headers), to: question))
    }

    @Test(
        arguments: [
            ("https://h/a.zip", true), ("https://h/a.tar.GZ?x=y.html", true), ("https://h/a.html", false),
            ("https://h/a/index.PHP?f=a.zip", false), ("https://h/a", false), ("https://h/", false),
            ("https://h/.zip", false), ("https://h/a.json", false), ("https://h/a.", false), ("https://h/a.b/c", false),
        ]
    )
    func urlTellsByItsExtensionThatItNamesNoPage(url: String, namesNoText: Bool) throws {
        #expect(try SourceURL(validating: url).namesNoText == namesNoText)
    }

    @Test func detailsHaveNoControlCharactersAndABoundedLength() throws {
        let field = "bytes \u{1b}[2J" + String(repeating: "x", count: 100_000)
        let facts = ResponseFacts(status: 206, headers: [(name: "Content-Range", value: field)])
        guard case .descend(let detail, _) = ResponseVerdict.judge(facts, to: .first) else {
            Issue.record("was not refused")
            return
        }
        #expect(detail.utf8.count < 1_000)
        #expect(detail.utf8.allSatisfy { $0 >= 32 })
    }

    /// Whatever an origin sends, accepted bytes lie within the requested range, at the requested offset.
    @Test(arguments: 0..<2_000 as Range<UInt64>)
    func acceptedBytesNeverLieOutsideTheQuestion(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let start = Int64.random(in: 0...3, using: &random)
        let asked = try #require(ByteRange(start: start, end: start + Int64.random(in: 1...3, using: &random)))
        let known = [Representation(), Representation(size: 5), Representation(size: 5, etag: "\"a\"")]
        let question = FetchQuestion(
            range: Int.random(in: 0...5, using: &random) == 0 ? nil : asked,
            conditional: Bool.random(using: &random),
            planned: Bool.random(using: &random),
            known: try #require(known.randomElement(using: &random)),
            expectedSize: Bool.random(using: &random) ? nil : 5,
            expectsDigest: Bool.random(using: &random),
            rule: Bool.random(using: &random) ? .strict : .sizeAndDigest,
            mayChunkUnvalidated: Bool.random(using: &random),
            isOtherMirror: Bool.random(using: &random),
            expectedContentType: Bool.random(using: &random) ? nil : "application/zip"
        )
        let (first, last) = (Int64.random(in: 0...6, using: &random), Int64.random(in: 0...6, using: &random))
        let candidates: [(name: String, value: String)] = [
            (name: "Content-Range", value: "bytes \(first)-\(last)/\(Int64.random(in: 4...7, using: &random))"),
            (name: "Content-Range", value: "bytes \(first)-\(last)/*"),
            (name: "Content-Length", value: "\(Int64.random(in: -1...6, using: &random))"),
            (name: "Transfer-Encoding", value: "chunked"), (name: "Content-Encoding", value: "gzip"),
            (name: "ETag", value: "\"a\""), (name: "ETag", value: "\"b\""),
            (name: "Content-Type", value: "application/zip"), (name: "Content-Type", value: "text/html"),
            (name: "Digest", value: "md5=AAAAAAAAAAAAAAAAAAAAAA=="),
        ]
        let headers = candidates.filter { _ in Bool.random(using: &random) }
        let status = try #require([200, 206, 206, 416, 204].randomElement(using: &random))
        let facts = ResponseFacts(status: status, headers: headers)
        guard case .accept(let body) = ResponseVerdict.judge(facts, to: question) else { return }

        #expect(status == 200 || status == 206)
        #expect(body.count ?? 0 >= 0)
        #expect(body.offset == (status == 206 && question.range != nil ? asked.start : 0))
        if status == 206, question.range == nil {
            #expect(body.count == body.representation.size)
        } else if status == 206 {
            #expect(body.offset + (body.count ?? .max / 2) <= asked.end)
        } else {
            // A whole file is never written into a file that other leases write to by ranges.
            #expect(question.range == nil || !question.planned)
            #expect(!body.isSplittable)
        }
        if let expected = question.expectedSize, let size = body.representation.size { #expect(size == expected) }
        let agreement = question.known.agreement(with: body.representation)
        if case .different = agreement, !question.expectsDigest { Issue.record("content was mixed") }
        if question.isOtherMirror {
            #expect(question.known.size == body.representation.size)
            #expect(question.expectsDigest || agreement == .same)
        }
        if question.expectedContentType != nil { #expect(facts.mediaType ?? "application/zip" == "application/zip") }
    }
}
