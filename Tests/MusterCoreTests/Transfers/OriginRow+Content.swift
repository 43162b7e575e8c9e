import MusterCore

private let tag = "ETag: \"v1\""
private let zero = String(repeating: "A", count: 43) + "="
private let other = "B" + String(repeating: "A", count: 42) + "="
private let zeroHexadecimal = String(repeating: "0", count: 64)
private let middleRange = ByteRange(start: 100, end: 200)

/// The questions of the rows about content.
extension FetchQuestion {
    /// A chunk of a planned task whose group ignores validators, and whose caller gave a digest.
    fileprivate static let tolerant = FetchQuestion(
        range: middleRange, planned: true, known: Representation(size: 1_000, etag: "\"v1\""), expectsDigest: true,
        rule: .sizeAndDigest)
    /// The same without a digest.
    fileprivate static let tolerantInVain = FetchQuestion(
        range: middleRange, planned: true, known: Representation(size: 1_000, etag: "\"v1\""), rule: .sizeAndDigest)
    /// The same with a digest that the origin stated.
    fileprivate static let tolerantAsStated = FetchQuestion(
        range: middleRange, planned: true,
        known: Representation(size: 1_000, etag: "\"v1\"", digests: ["sha256": zeroHexadecimal]), rule: .sizeAndDigest)
    /// The first request of a group that allows chunks of content without validators.
    fileprivate static let allowed = FetchQuestion(
        range: ByteRange(first: 100), planned: false, known: Representation(), mayChunkUnvalidated: true)
    /// A chunk in the middle of a task of such a group, of content without validators.
    fileprivate static let allowedMiddle = FetchQuestion(
        range: middleRange, planned: true, known: Representation(size: 1_000), mayChunkUnvalidated: true)
    /// A chunk of a planned task whose origin stated a digest, and nothing else.
    fileprivate static let stated = FetchQuestion(
        range: middleRange, planned: true, known: Representation(size: 1_000, digests: ["sha256": zeroHexadecimal]))
    /// The first request where the caller knows the type.
    fileprivate static let typed = FetchQuestion(
        range: ByteRange(first: 100), planned: false, known: Representation(), expectedContentType: "application/zip")
    /// A chunk in the middle where the caller knows the type.
    fileprivate static let typedMiddle = FetchQuestion(
        range: middleRange, planned: true, known: Representation(size: 1_000, etag: "\"v1\""),
        expectedContentType: "application/zip")
    /// A chunk of a planned task whose tag is weak, and whose date is strong.
    fileprivate static let weak = FetchQuestion(
        range: middleRange, conditional: true, planned: true,
        known: Representation(
            size: 1_000, etag: "W/\"v1\"", lastModified: "Sun, 01 Mar 2026 12:00:00 GMT", isDateStrong: true))
}

extension OriginRow {
    private static let part = "Content-Range: bytes 100-199/1000"
    private static let taken = Outcome.accept(offset: 100, count: 100, splittable: true)
    private static let first = "Content-Range: bytes 0-99/1000"
    private static let firstTaken = Outcome.accept(offset: 0, count: 100, splittable: true)
    private static let day = "Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT"
    private static let later = "Date: Tue, 03 Mar 2026 12:00:00 GMT"
    private static let nextDay = "Last-Modified: Mon, 02 Mar 2026 12:00:00 GMT"

    /// Rows 9 to 12, 19 to 21, 27, 29, 35 and 37: whether the answer has the content that was asked for.
    static let contents: [OriginRow] = [
        OriginRow(
            9, "has a weak tag and a date that agree", 206, [part, "ETag: W/\"v1\"", day, later], to: .weak, taken),
        OriginRow(
            9, "has a weak tag that agrees and another date", 206, [part, "ETag: W/\"v1\"", nextDay], to: .weak,
            .refuse(.changed)),
        OriginRow(9, "has no tag any more, and a date that agrees", 206, [part, day, later], to: .weak, taken),
        OriginRow(9, "has the same date, and no Date", 206, [part, day], to: .weak, .descend(.stream)),
        OriginRow(
            9, "has a weak tag that agrees, and no date", 206, [part, "ETag: W/\"v1\""], to: .weak, .askUnconditionally),
        OriginRow(
            9, "has the same date, which was young", 206, [part, day, "Date: Sun, 01 Mar 2026 12:00:59 GMT"],
            to: .weak, .descend(.stream)),
        OriginRow(
            8, "has a weak tag, where a strong one is known", 206, [part, "ETag: W/\"v1\""], to: .middle,
            .descend(.stream)),
        OriginRow(
            8, "has no strong tag any more, and a date that agrees", 206, [part, day], to: .taggedAndDated,
            .descend(.stream)),
        OriginRow(9, "has a date alone, and no Date", 206, [first, day], to: .first, .descend(.whole)),
        OriginRow(
            9, "has a date alone that is 59 s old", 206, [first, day, "Date: Sun, 01 Mar 2026 12:00:59 GMT"],
            to: .first,
            .descend(.whole)),
        OriginRow(
            9, "has a date alone that is 60 s old", 206, [first, day, "Date: Sun, 01 Mar 2026 12:01:00 GMT"],
            to: .first,
            firstTaken),
        OriginRow(
            9, "has a young date, and one chunk is all", 206, ["Content-Range: bytes 0-49/50", day], to: .first,
            .accept(offset: 0, count: 50, splittable: false)),
        OriginRow(
            10, "mistrusts a date in If-Range although nothing changed", 200,
            ["Content-Length: 1000", "ETag: W/\"v1\"", day], to: .weak, .askUnconditionally),
        OriginRow(
            10, "answers 200 to a date in If-Range since it changed", 200, ["Content-Length: 1000", nextDay], to: .weak,
            .refuse(.changed)),

        OriginRow(
            11, "has another tag on another node, where tags mean nothing", 206, [part, "ETag: \"v2\"", nextDay],
            to: .tolerant, taken),
        OriginRow(11, "has no tag on another node, where tags mean nothing", 206, [part], to: .tolerant, taken),
        OriginRow(
            11, "has another size where tags mean nothing", 206, ["Content-Range: bytes 100-199/1001", tag],
            to: .tolerant, .refuse(.changed)),
        OriginRow(
            11, "has another tag where they would mean nothing if there were a digest", 206, [part, "ETag: \"v2\""],
            to: .tolerantInVain, .refuse(.changed)),
        OriginRow(
            11, "has another tag where they mean nothing, since it stated a digest", 206, [part, "ETag: \"v2\""],
            to: .tolerantAsStated, taken),
        OriginRow(
            11, "states another digest where tags mean nothing", 206, [part, tag, "Repr-Digest: sha-256=:\(other):"],
            to: .tolerantAsStated, .refuse(.changed)),

        OriginRow(12, "has no validator, and the group allows it", 206, [first], to: .allowed, firstTaken),
        OriginRow(
            12, "has no validator in the middle, and the group allows it", 206, [part], to: .allowedMiddle, taken),
        OriginRow(
            12, "has another size in the middle, whatever the group allows", 206,
            ["Content-Range: bytes 100-199/1001"], to: .allowedMiddle, .refuse(.changed)),
        OriginRow(
            12, "ignores Range, whatever the group allows", 200, ["Content-Length: 1000"], to: .allowedMiddle,
            .descend(.stream)),
        OriginRow(
            12, "has no validator but states a digest", 206, [first, "Repr-Digest: sha-256=:\(zero):"], to: .first,
            firstTaken),
        OriginRow(
            12, "has no validator but states a checksum, which proves nothing", 206,
            [first, "Repr-Digest: crc32c=:AAAAAA==:"], to: .first, .descend(.whole)),

        OriginRow(19, "denies ranges and sends one", 206, [first, tag, "Accept-Ranges: none"], to: .first, firstTaken),
        OriginRow(
            19, "promises ranges and sends none", 200, ["Content-Length: 1000", tag, "Accept-Ranges: bytes"],
            to: .first, .accept(offset: 0, count: 1_000, splittable: false)),
        OriginRow(20, "redirects for ever", 307, ["Location: /a"], to: .middle, .refuse(.httpStatus(307))),
        OriginRow(21, "has an expired URL", 401, [], to: .middle, .refuse(.authentication)),
        OriginRow(21, "has a URL whose signature expired", 403, [], to: .middle, .refuse(.httpStatus(403))),
        OriginRow(21, "has a URL that is gone", 410, [], to: .middle, .refuse(.notFound)),

        OriginRow(
            27, "sends a page without validators in place of content that has them", 200,
            ["Content-Length: 512", "Content-Type: text/html"], to: .weak, .refuse(.network)),
        OriginRow(
            27, "sends an error page with 200", 200, ["Content-Length: 512", "Content-Type: text/html"], to: .typed,
            .descend(.whole)),
        OriginRow(
            27, "sends a range of an error page", 206, [first, tag, "Content-Type: text/html; charset=utf-8"],
            to: .typed, .descend(.whole)),
        OriginRow(
            27, "sends an error page in the middle, which is no change", 200,
            ["Content-Length: 512", "Content-Type: text/html", "ETag: \"page\""], to: .typedMiddle,
            .refuse(.httpStatus(200))),
        OriginRow(
            27, "sends the type in capitals and with parameters", 206,
            [first, tag, "Content-Type: Application/ZIP ; x=y"], to: .typed, firstTaken),
        OriginRow(27, "sends no type", 206, [first, tag], to: .typed, firstTaken),
        OriginRow(
            27, "sends two types", 206,
            [first, tag, "Content-Type: text/html", "Content-Type: application/zip"], to: .typed,
            .descend(.whole)),
        OriginRow(
            27, "sends any type where none is expected", 206, [first, tag, "Content-Type: text/html"],
            to: .first, firstTaken),

        OriginRow(
            29, "mixes versions of one size", 206, [part, "ETag: \"v0\"", "Age: 60"], to: .middle, .refuse(.changed)),

        OriginRow(
            35, "states the digest that it stated", 206, [part, "Repr-Digest: sha-256=:\(zero):"], to: .stated, taken),
        OriginRow(
            35, "states another digest than it stated", 206, [part, "Digest: SHA-256=\(other)"], to: .stated,
            .refuse(.changed)),
        OriginRow(35, "states no digest any more, which the end tells", 206, [part], to: .stated, taken),
        OriginRow(
            35, "states a digest that can't be read", 206, [part, "Repr-Digest: sha-256=:????:"], to: .stated, taken),
        OriginRow(
            35, "has an ETag that looks like a digest", 206, [first, "ETag: \"\(zeroHexadecimal)\""], to: .first,
            firstTaken),

        OriginRow(37, "resumes by ftp", 206, [part, day, later], to: .byDate, taken),
        OriginRow(37, "has a newer file by ftp", 206, [part, nextDay], to: .byDate, .refuse(.changed)),
        OriginRow(
            37, "has a longer file by sftp", 206, ["Content-Range: bytes 100-199/1001", day], to: .byDate,
            .refuse(.changed)),
        OriginRow(
            37, "can't resume by ftp", 200, ["Content-Length: 1000", day], to: .first,
            .accept(offset: 0, count: 1_000, splittable: false)),
    ]
}
