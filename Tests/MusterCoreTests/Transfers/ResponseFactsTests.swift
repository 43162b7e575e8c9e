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
            "", "bytes", "bytes ", "0-99/100", "items 0-99/100", "bytes=0-99/100", "bytes:0-99/100", "bytes 0-99",
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
    func lengthsThatAgreeAreOne(lengths: [String], length: Int64?) throws {
        let facts = ResponseFacts(status: 200, headers: lengths.map { (name: "Content-Length", value: $0) })
        #expect(try facts.contentLength() == length)
    }

    @Test(
        arguments: [
            ["5", "6"], ["5, 6"], ["-1"], ["+5"], ["5.0"], ["0x5"], ["five"], ["5 5"], ["05", "5"],
            ["9223372036854775808"], ["9223372036854775807"],
        ])
    func lengthsThatConflictOrAreNoNumberAreNotBelieved(lengths: [String]) {
        let facts = ResponseFacts(status: 200, headers: lengths.map { (name: "Content-Length", value: $0) })
        #expect(throws: ResponseFacts.MalformedLength.self) { try facts.contentLength() }
    }

    @Test func lengthBesideATransferCodingIsNotBelieved() {
        let facts = Self.facts(("Content-Length", "5"), ("Transfer-Encoding", "chunked"))
        #expect(facts.isChunked)
        #expect(throws: ResponseFacts.MalformedLength.self) { try facts.contentLength() }
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
    }

    @Test(
        arguments: [
            ("120", 120), ("0", 0), ("-5", nil), ("1.5", nil), ("Fri, 31 Dec 1999 23:59:59 GMT", nil), ("", nil),
        ] as [(String, Int64?)]
    )
    func retryAfterIsReadInSeconds(field: String, seconds: Int64?) {
        #expect(Self.facts(("Retry-After", field)).retryAfterSeconds == seconds)
    }

    @Test func factsAreEqualWhenStatusAndFieldsAre() {
        #expect(Self.facts(("A", "1")) == Self.facts(("a", "1")))
        #expect(Self.facts(("A", "1")).hashValue == Self.facts(("a", "1")).hashValue)
        #expect(Self.facts(("A", "1")) != Self.facts(("A", "2")))
        #expect(Self.facts(("A", "1")) != Self.facts())
    }
}

struct RepresentationTests {
    /// What two responses say of the same content, or not.
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
            // The tag decides where both have one.
            (Representation(etag: "\"a\"", lastModified: "x"), Representation(etag: "\"a\"", lastModified: "y"), .same),
            (
                Representation(size: 5, etag: "\"a\""), Representation(size: 6, etag: "\"a\""),
                .different("size 5 became 6")
            ),
        ] as [(Representation, Representation, Representation.Agreement)]
    )
    func whatBothStateIsCompared(known: Representation, found: Representation, agreement: Representation.Agreement) {
        #expect(known.agreement(with: found) == agreement)
    }

    @Test(arguments: [("\"a\"", true), ("\"\"", true), ("W/\"a\"", false), ("a", false), ("\"", false), ("\"a", false)])
    func onlyAStrongTagMayBeSentInIfRange(etag: String, isStrong: Bool) {
        #expect(Representation(etag: etag).strongETag == (isStrong ? etag : nil))
    }

    @Test func aTagOrADateIsAValidator() {
        #expect(!Representation(size: 5).hasValidator)
        #expect(Representation(etag: "W/\"a\"").hasValidator)
        #expect(Representation(lastModified: "x").hasValidator)
    }
}
