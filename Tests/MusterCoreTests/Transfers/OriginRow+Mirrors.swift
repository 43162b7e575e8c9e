import MusterCore

private let tag = "ETag: \"v1\""
private let day = "Sun, 01 Mar 2026 12:00:00 GMT"
private let zero = String(repeating: "A", count: 22) + "=="
private let other = "B" + String(repeating: "A", count: 21) + "=="
private let middleRange = ByteRange(start: 100, end: 200)
private let tagged = Representation(size: 1_000, etag: "\"v1\"", lastModified: day)

/// The questions of the rows about other mirrors, and about the end of a file.
extension FetchQuestion {
    /// A chunk of content that is known from another mirror.
    fileprivate static let mirror = FetchQuestion(range: middleRange, planned: true, known: tagged, isOtherMirror: true)
    /// The same with If-Range.
    fileprivate static let conditionalMirror = FetchQuestion(
        range: middleRange, conditional: true, planned: true, known: tagged, isOtherMirror: true)
    /// The same where the caller gave a digest.
    fileprivate static let provenMirror = FetchQuestion(
        range: middleRange, planned: true, known: tagged, expectsDigest: true, isOtherMirror: true)
    /// The same where the first mirror has nothing but a date.
    fileprivate static let datedMirror = FetchQuestion(
        range: middleRange, planned: true, known: Representation(size: 1_000, lastModified: day), isOtherMirror: true)
    /// The same where the first mirror has a weak tag only.
    fileprivate static let weakMirror = FetchQuestion(
        range: middleRange, planned: true, known: Representation(size: 1_000, etag: "W/\"v1\""), isOtherMirror: true)
    /// The same where the first mirror stated a digest.
    fileprivate static let statedMirror = FetchQuestion(
        range: middleRange, planned: true,
        known: Representation(size: 1_000, digests: ["md5": String(repeating: "0", count: 32)]), isOtherMirror: true)
    /// The same where the group allows chunks without validators, which does not extend to several mirrors.
    fileprivate static let allowedMirror = FetchQuestion(
        range: middleRange, planned: true, known: Representation(size: 1_000), mayChunkUnvalidated: true,
        isOtherMirror: true)

    /// The range from byte 1,000 on, when all bytes before it are there.
    private static func end(
        _ known: Representation, conditional: Bool = false, expectedSize: Int64? = nil, expectsDigest: Bool = false
    ) -> FetchQuestion {
        FetchQuestion(
            range: ByteRange(start: 1_000, end: 1_100), conditional: conditional, planned: true, known: known,
            expectedSize: expectedSize, expectsDigest: expectsDigest)
    }
    fileprivate static let knownEnd = end(Representation(size: 1_000, etag: "\"v1\""))
    fileprivate static let unknownEnd = end(Representation(etag: "\"v1\""))
    fileprivate static let conditionalEnd = end(Representation(etag: "\"v1\""), conditional: true)
    fileprivate static let expectedEnd = end(Representation(), expectedSize: 1_000)
    fileprivate static let provenEnd = end(Representation(), expectsDigest: true)
    fileprivate static let longerEnd = end(Representation(), expectedSize: 2_000)
}

extension OriginRow {
    private static let part = "Content-Range: bytes 100-199/1000"
    private static let taken = Outcome.accept(offset: 100, count: 100, splittable: true)

    /// Row 30: answers of another mirror.
    static let mirrors: [OriginRow] = [
        OriginRow(30, "has the same size and the same strong tag", 206, [part, tag], to: .mirror, taken),
        OriginRow(
            30, "has the same strong tag and another date", 206,
            [part, tag, "Last-Modified: Mon, 02 Mar 2026 12:00:00 GMT"], to: .mirror, taken),
        OriginRow(
            30, "has the same strong tag and another size", 206, ["Content-Range: bytes 100-199/999", tag],
            to: .mirror, .refuse(.changed)),
        OriginRow(
            30, "has the same strong tag and does not tell its size", 206, ["Content-Range: bytes 100-199/*", tag],
            to: .mirror, .refuse(.changed)),
        OriginRow(30, "has another strong tag", 206, [part, "ETag: \"v2\""], to: .mirror, .refuse(.changed)),
        OriginRow(30, "has the same tag, but weak", 206, [part, "ETag: W/\"v1\""], to: .mirror, .refuse(.changed)),
        OriginRow(30, "has no tag", 206, [part], to: .mirror, .refuse(.changed)),
        OriginRow(
            30, "has the same weak tag as the other", 206, [part, "ETag: W/\"v1\""], to: .weakMirror, .refuse(.changed)),
        OriginRow(
            30, "has the same date as the other", 206, [part, "Last-Modified: \(day)"], to: .datedMirror,
            .refuse(.changed)),
        OriginRow(30, "has nothing to tell its content by", 206, [part], to: .allowedMirror, .refuse(.changed)),
        OriginRow(
            30, "has another tag, and a digest is expected", 206, [part, "ETag: \"v2\""], to: .provenMirror, taken),
        OriginRow(30, "has no tag, and a digest is expected", 206, [part], to: .provenMirror, taken),
        OriginRow(
            30, "has another size, and a digest is expected", 206, ["Content-Range: bytes 100-199/999", tag],
            to: .provenMirror, .refuse(.changed)),
        OriginRow(
            30, "states the same digest", 206, [part, "Content-MD5: x", "Digest: md5=\(zero)"], to: .statedMirror, taken
        ),
        OriginRow(
            30, "states another digest", 206, [part, tag, "Digest: md5=\(other)"], to: .statedMirror, .refuse(.changed)),
        OriginRow(30, "states no digest where the other did", 206, [part], to: .statedMirror, taken),
        OriginRow(
            30, "ignores Range, which makes nobody start over", 200, ["Content-Length: 1000", tag], to: .mirror,
            .refuse(.changed)),
        OriginRow(
            30, "has a larger file in a 200", 200, ["Content-Length: 1001", tag], to: .conditionalMirror,
            .refuse(.changed)),
        OriginRow(
            30, "mistrusts the If-Range of another", 200, ["Content-Length: 1000", tag], to: .conditionalMirror,
            .askUnconditionally),
        OriginRow(
            30, "has a shorter file", 416, ["Content-Range: bytes */50"], to: .mirror, .refuse(.changed)),
    ]

    /// Row 16: the meaning of a 416.
    static let ends: [OriginRow] = [
        OriginRow(16, "answers 416 at offset 0", 416, ["Content-Range: bytes */0"], to: .first, .descend(.whole)),
        OriginRow(16, "answers 416 at offset 0 without a size", 416, [], to: .first, .descend(.whole)),
        OriginRow(16, "answers 416 elsewhere", 416, ["Content-Range: bytes */50"], to: .middle, .refuse(.changed)),
        OriginRow(
            16, "answers 416 elsewhere and has the known size", 416, ["Content-Range: bytes */1000"], to: .middle,
            .descend(.stream)),
        OriginRow(16, "answers 416 elsewhere without a size", 416, [], to: .middle, .refuse(.changed)),
        OriginRow(
            16, "answers 416 at offset 0 of a planned task", 416, ["Content-Range: bytes */0"], to: .again,
            .refuse(.changed)),
        OriginRow(16, "answers 416 to a plain GET", 416, [], to: .stream, .refuse(.httpStatus(416))),

        OriginRow(16, "ends exactly there", 416, ["Content-Range: bytes */1000"], to: .knownEnd, .complete),
        OriginRow(
            16, "ends exactly there with its tag", 416, ["Content-Range: bytes */1000", tag], to: .knownEnd, .complete),
        OriginRow(
            16, "ends exactly there with another tag", 416, ["Content-Range: bytes */1000", "ETag: \"v2\""],
            to: .knownEnd, .refuse(.changed)),
        OriginRow(16, "ends before", 416, ["Content-Range: bytes */999"], to: .knownEnd, .refuse(.changed)),
        OriginRow(
            16, "has a longer file and answers 416", 416, ["Content-Range: bytes */1001"], to: .knownEnd,
            .refuse(.changed)),
        OriginRow(16, "does not say where it ends", 416, [], to: .knownEnd, .refuse(.changed)),
        OriginRow(
            16, "says where it ends twice", 416, ["Content-Range: bytes */1000", "Content-Range: bytes */1000"],
            to: .knownEnd, .refuse(.changed)),
        OriginRow(
            16, "says where it ends with a range", 416, ["Content-Range: bytes 0-999/1000"], to: .knownEnd,
            .refuse(.changed)),
        OriginRow(
            16, "ends there for the first time, and nothing tells whether it is still the same", 416,
            ["Content-Range: bytes */1000"], to: .unknownEnd, .refuse(.changed)),
        OriginRow(
            16, "ends there for the first time, with its tag", 416, ["Content-Range: bytes */1000", tag],
            to: .unknownEnd, .complete),
        OriginRow(
            16, "ends there for the first time, and If-Range matched", 416, ["Content-Range: bytes */1000"],
            to: .conditionalEnd, .complete),
        OriginRow(16, "ends there as expected", 416, ["Content-Range: bytes */1000"], to: .expectedEnd, .complete),
        OriginRow(
            16, "ends there, and a digest is expected", 416, ["Content-Range: bytes */1000"], to: .provenEnd, .complete),
        OriginRow(
            16, "ends earlier than expected", 416, ["Content-Range: bytes */1000"], to: .longerEnd,
            .refuse(.sizeMismatch)),
    ]
}
