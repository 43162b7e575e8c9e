import MusterCore
import Testing

struct ContentRangeTests {
    @Test(
        arguments: [
            ("bytes 0-99/1234", 0, 100, 1_234), ("bytes 0-0/1", 0, 1, 1), ("bytes 5-9/10", 5, 10, 10),
            ("bytes 0-99/*", 0, 100, nil), ("BYTES 0-99/100", 0, 100, 100), ("bytes  0-99/100", 0, 100, 100),
            ("bytes 007-9/10", 7, 10, 10),
        ] as [(String, Int64, Int64, Int64?)]
    )
    func rangeAndSizeAreRead(field: String, start: Int64, end: Int64, size: Int64?) throws {
        let content = try #require(ContentRange(field))
        #expect(content.range == ByteRange(start: start, end: end))
        #expect(content.size == size)
    }

    @Test func unsatisfiedRangeHasASizeOnly() throws {
        let content = try #require(ContentRange("bytes */1234"))
        #expect(content.range == nil)
        #expect(content.size == 1_234)
    }

    @Test(
        arguments: [
            "", "bytes", "bytes ", "0-99/100", "items 0-99/100", "bytes=0=99/100", "bytes:0-99/100", "bytes 0-99",
            "bytes 0-99/", "bytes /100", "bytes -99/100", "bytes 0-/100", "bytes 99-0/100", "bytes 0-100/100",
            "bytes 0-99/99", "bytes 0-99/100/100", "bytes 0-99,200-299/1000", "bytes 0 - 99/100", "bytes 0-99 /100",
            "bytes */*", "bytes +0-99/100", "bytes 0-+99/100", "bytes 0--99/100", "bytes -1-99/100", "bytes 0x0-0x9/16",
            "bytes 0-99/-100", "bytes 0-99/1e3", "bytes 0-9223372036854775807/*", "bytes 0-99/9223372036854775807",
            "bytes 0-99/99999999999999999999", "bytes ٠-٩/١٠",
        ])
    func malformedFieldsAreRefused(field: String) {
        #expect(ContentRange(field) == nil)
    }
}

struct ResponseFactsTests {
    private static func facts(_ headers: (String, String)...) -> ResponseFacts {
        ResponseFacts(status: 200, headers: headers.map { (name: $0.0, value: $0.1) })
    }

    @Test func fieldsAreFoundInAnyCaseAndInOrder() {
        let facts = Self.facts(("ETag", "\"1\""), ("etag", "\"2\""), ("X", "y"))
        #expect(facts.values("etag") == ["\"1\"", "\"2\""])
        #expect(facts.value("etag") == "\"2\"")
        #expect(facts.value("absent") == nil)
    }

    @Test(
        arguments: [
            ([], nil), (["0"], 0), (["123"], 123), (["5", "5"], 5), (["5, 5"], 5), (["5 ,\t5"], 5), (["007"], 7),
        ] as [([String], Int64?)]
    )
    func lengthsThatAgreeAreAccepted(lengths: [String], length: Int64?) throws {
        let facts = ResponseFacts(status: 200, headers: lengths.map { (name: "Content-Length", value: $0) })
        #expect(try facts.contentLength() == length)
    }

    @Test(
        arguments: [
            ["5", "6"], ["5, 6"], ["-1"], ["+5"], ["5.0"], ["0x5"], ["five"], ["5abc"], ["5 5"], ["05", "5"],
            ["9223372036854775808"], ["9223372036854775807"],
        ])
    func lengthsThatConflictOrAreNoNumberAreNotBelieved(lengths: [String]) {
        let facts = ResponseFacts(status: 200, headers: lengths.map { (name: "Content-Length", value: $0) })
        #expect(throws: ResponseFacts.MalformedLength.self) { try facts.contentLength() }
    }

    @Test func textAroundALengthIsIgnoredOnRequest() throws {
        for length in ["+5", "5;", "5 bytes", "5;q"] {
            #expect(try Self.facts(("Content-Length", length)).contentLength(overlooking: true) == 5, "\(length)")
        }
        for length in ["++5", "5 5", "5.0", ";", "5, 6;", "-5"] {
            #expect(throws: ResponseFacts.MalformedLength.self, "\(length)") {
                try Self.facts(("Content-Length", length)).contentLength(overlooking: true)
            }
        }
    }

    /// Such values don't depend on the content.
    @Test(arguments: [
        ("ETag", "\"\""), ("ETag", "W/\"\""), ("ETag", ""), ("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("Last-Modified", "Wed, 31 Dec 1969 23:59:59 GMT"), ("Last-Modified", "Sun, 01 Mar 2026 12:00:00 GMT"),
    ])
    func valueThatDoesNotDependOnTheContentIsNoValidator(name: String, value: String) {
        let found = Self.facts((name, value), ("Date", "Sun, 01 Mar 2026 12:00:00 GMT")).representation(size: 5)
        #expect(found == Representation(size: 5))
    }

    @Test func lengthBesideATransferCodingIsNotBelieved() throws {
        let facts = Self.facts(("Content-Length", "5"), ("Transfer-Encoding", "chunked"))
        #expect(facts.isChunked)
        #expect(throws: ResponseFacts.MalformedLength.self) { try facts.contentLength() }
        let uncoded = Self.facts(("Content-Length", "5"), ("Transfer-Encoding", "Identity"))
        let length = try uncoded.contentLength()
        #expect(!uncoded.isChunked && length == 5)
    }

    @Test(arguments: [("identity", nil), ("Identity", nil), ("", nil), ("gzip", "gzip"), ("br", "br")])
    func identityIsNoContentCoding(field: String, coding: String?) {
        #expect(Self.facts(("Content-Encoding", field)).contentCoding == coding)
    }

    @Test func contentCodingsAddUp() {
        let facts = Self.facts(
            ("Content-Encoding", "gzip"),
            ("Content-Encoding", "identity"),
            ("Content-Encoding", "br")
        )
        #expect(facts.contentCoding == "gzip, br")
        #expect(Self.facts().contentCoding == nil)
        #expect(Self.facts(("Content-Encoding", "none")).contentCoding == nil)
        #expect(Self.facts(("Content-Encoding", "Identity, , NONE")).contentCoding == nil)
        #expect(Self.facts(("Content-Encoding", "identity, gzip")).contentCoding == "gzip")
    }

    /// Row 25. The date of the answer is the only clock.
    @Test(
        arguments: [
            ("120", nil, 120), ("0", nil, 0), ("3600", nil, 3_600), ("3601", nil, 3_600),
            ("99999999999999999999999999", nil, 3_600),
            ("-5", nil, nil), ("+5", nil, nil), ("1.5", nil, nil), ("", nil, nil), ("soon", nil, nil),
            ("5 s", nil, nil),
            ("Fri, 31 Dec 1999 23:59:59 GMT", nil, nil),
            ("Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:00 GMT", 59),
            ("Friday, 31-Dec-99 23:59:59 GMT", "Fri Dec 31 23:59:00 1999", 59),
            ("Fri, 31 Dec 1999 23:59:59 GMT", "Sat, 01 Jan 2000 00:00:00 GMT", 0),
            ("Fri, 31 Dec 2999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:00 GMT", 3_600),
            ("Fri, 31 Dec 1999 23:59:59 GMT", "yesterday", nil),
            ("Fri, 31 Dec 1999", "Fri, 31 Dec 1999 23:59:00 GMT", nil),
        ] as [(String, String?, Int64?)]
    )
    func retryAfterIsReadInSecondsOrAgainstTheAnswersOwnDate(field: String, date: String?, seconds: Int64?) {
        var headers = [(name: "Retry-After", value: field)]
        if let date { headers.append((name: "Date", value: date)) }
        #expect(ResponseFacts(status: 429, headers: headers).retryAfterSeconds == seconds)
    }

    /// Row 9.
    @Test(
        arguments: [
            ("Sun, 01 Mar 2026 12:00:00 GMT", "Sun, 01 Mar 2026 12:01:00 GMT", true),
            ("Sun, 01 Mar 2026 12:00:00 GMT", "Sun, 01 Mar 2026 12:00:59 GMT", false),
            ("Sun, 01 Mar 2026 12:00:00 GMT", "Sun, 01 Mar 2026 11:00:00 GMT", false),
            ("Sun, 01 Mar 2026 12:00:00 GMT", "Sunday, 01-Mar-26 13:00:00 GMT", true),
            ("Sun, 01 Mar 2026 12:00:00 GMT", nil, nil), (nil, "Sun, 01 Mar 2026 12:00:00 GMT", nil),
            ("before", "Sun, 01 Mar 2026 12:00:00 GMT", nil), ("Sun, 01 Mar 2026 12:00:00 GMT", "now", nil),
        ] as [(String?, String?, Bool?)]
    )
    func dateIsStrongIfItIsAMinuteOlderThanTheAnswer(modified: String?, date: String?, isStrong: Bool?) {
        let headers = [("Last-Modified", modified), ("Date", date)].compactMap { name, value in
            value.map { (name: name, value: $0) }
        }
        let representation = ResponseFacts(status: 206, headers: headers).representation(size: 5)
        #expect(representation.isDateStrong == isStrong)
        #expect(representation.lastModified == modified)
    }

    @Test(
        arguments: [
            ([], nil), (["application/zip"], "application/zip"), (["Text/HTML; charset=utf-8"], "text/html"),
            (["text/html ;x"], "text/html"), ([""], ""), ([";"], ""), (["a/b", "A/B;q"], "a/b"),
            (["text/html", "application/zip"], "application/zip, text/html"),
        ] as [([String], String?)]
    )
    func mediaTypeIsReadWithoutParameters(fields: [String], type: String?) {
        let headers = fields.map { (name: "Content-Type", value: $0) }
        #expect(ResponseFacts(status: 200, headers: headers).mediaType == type)
    }

    @Test func factsAreEqualWhenStatusAndFieldsAre() {
        #expect(Self.facts(("A", "1")) == Self.facts(("a", "1")))
        #expect(Self.facts(("A", "1")).hashValue == Self.facts(("a", "1")).hashValue)
        #expect(Self.facts(("A", "1")) != Self.facts(("A", "2")))
        #expect(Self.facts(("A", "1")) != Self.facts())
    }
}

struct RepresentationTests {
    /// Whether two responses are of the same content.
    @Test(
        arguments: [
            (Representation(), Representation(), .unknown),
            (Representation(size: 5), Representation(), .unknown),
            // A size alone proves nothing.
            (Representation(size: 5), Representation(size: 5), .unknown),
            (Representation(size: 5), Representation(size: 6), .different("size 5 became 6")),
            (Representation(etag: "\"a\""), Representation(etag: "\"a\""), .same),
            (Representation(etag: "\"a\""), Representation(etag: "\"b\""), .different("ETag \"a\" became \"b\"")),
            (Representation(etag: "W/\"a\""), Representation(etag: "\"a\""), .same),
            (
                Representation(etag: "W/\"a\""), Representation(etag: "W/\"b\""),
                .different("ETag W/\"a\" became W/\"b\"")
            ),
            (Representation(etag: "\"a\""), Representation(lastModified: "x"), .unknown),
            (Representation(lastModified: "x"), Representation(lastModified: "x"), .same),
            (
                Representation(lastModified: "x"), Representation(lastModified: "y"),
                .different("Last-Modified x became y")
            ),
            // Under a weak tag the bytes may differ, so the dates count too.
            (
                Representation(etag: "W/\"a\"", lastModified: "x"), Representation(etag: "W/\"a\"", lastModified: "y"),
                .different("Last-Modified x became y")
            ),
            (
                Representation(etag: "W/\"a\"", lastModified: "x"), Representation(etag: "W/\"a\"", lastModified: "x"),
                .same
            ),
            // A digest that both state is a validator, if its algorithm is known and not just a checksum.
            (Representation(digests: ["md5": "00"]), Representation(digests: ["md5": "00"]), .same),
            (
                Representation(digests: ["md5": "00"]), Representation(digests: ["md5": "01"]),
                .different("md5 00 became 01")
            ),
            (
                Representation(etag: "\"a\"", digests: ["crc32c": "00"]),
                Representation(etag: "\"a\"", digests: ["crc32c": "01"]), .different("crc32c 00 became 01")
            ),
            (Representation(digests: ["crc32c": "00"]), Representation(digests: ["crc32c": "00"]), .unknown),
            (Representation(digests: ["md5": "00"]), Representation(digests: ["sha256": "01"]), .unknown),
            (Representation(digests: ["x": "00"]), Representation(digests: ["x": "00"]), .unknown),
            // A strong tag that stays while the date changes is not to be trusted (row 6).
            (
                Representation(etag: "\"a\"", lastModified: "x"), Representation(etag: "\"a\"", lastModified: "y"),
                .different("Last-Modified x became y")
            ),
            (
                Representation(size: 5, etag: "\"a\""), Representation(size: 6, etag: "\"a\""),
                .different("size 5 became 6")
            ),
        ] as [(Representation, Representation, Representation.Agreement)]
    )
    func statedValuesAreCompared(known: Representation, found: Representation, agreement: Representation.Agreement) {
        #expect(known.agreement(with: found) == agreement)
    }

    /// Row 11: under this rule validators are ignored, and sizes and digests count.
    @Test(
        arguments: [
            (Representation(size: 5, etag: "\"a\""), Representation(size: 5, etag: "\"b\""), .unknown),
            (Representation(size: 5, etag: "\"a\""), Representation(size: 5, etag: "\"a\""), .unknown),
            (Representation(lastModified: "x"), Representation(lastModified: "y"), .unknown),
            (Representation(size: 5), Representation(size: 6), .different("size 5 became 6")),
            (Representation(digests: ["md5": "00"]), Representation(digests: ["md5": "00"]), .same),
            (
                Representation(etag: "\"a\"", digests: ["md5": "00"]),
                Representation(etag: "\"a\"", digests: ["md5": "01"]),
                .different("md5 00 became 01")
            ),
        ] as [(Representation, Representation, Representation.Agreement)]
    )
    func sizesAndDigestsAloneAreComparedByThatRule(
        known: Representation, found: Representation, agreement: Representation.Agreement
    ) {
        #expect(known.agreement(with: found, under: .sizeAndDigest) == agreement)
    }

    @Test(
        arguments: [
            (nil, false), ([:], false), (["crc32c": "00"], false), (["x": "00"], false), (["md5": "00"], true),
            (["crc32c": "00", "sha256": "00"], true),
        ] as [([String: String]?, Bool)]
    )
    func checksumIsNoDigestThatProvesContent(digests: [String: String]?, states: Bool) {
        #expect(Representation(digests: digests).statesDigest == states)
    }

    @Test(arguments: [("\"a\"", true), ("\"\"", true), ("W/\"a\"", false), ("a", false), ("\"", false), ("\"a", false)])
    func onlyAStrongTagMayBeSentInIfRange(etag: String, isStrong: Bool) {
        #expect(Representation(etag: etag).strongETag == (isStrong ? etag : nil))
    }

    @Test func overlongValidatorIsIgnored() {
        let long = String(repeating: "e", count: Limits.validatorBytes + 1)
        let facts = ResponseFacts(
            status: 200, headers: [(name: "ETag", value: long), (name: "Last-Modified", value: long)])
        #expect(facts.representation(size: 5) == Representation(size: 5))
    }

    @Test func aTagOrADateIsAValidator() {
        #expect(!Representation(size: 5).hasValidator)
        #expect(Representation(etag: "W/\"a\"").hasValidator)
        #expect(Representation(lastModified: "x").hasValidator)
    }
}
