extension HostileGallery.Specification {
    /// All specifications, by row.
    static func all(size: Int64) -> [Self] {
        ranges(size) + versions(size) + bodies(size) + journeys(size) + limits(size) + lies(size)
    }

    /// Answers to range requests and to HEAD (1–5, 7, 16–19).
    private static func ranges(_ size: Int64) -> [Self] {
        [
            Self(1, "ignores-ranges", "answers 200 to every range request", size: size).always(.ignoreRange),
            Self(1, "ignores-later-ranges", "answers 200 to all but the first range request", size: size)
                .later(.ignoreRange),
            Self(2, "moves-ranges", "sends another part than was asked for, and says so", size: size)
                .ranged(.rangeShifted(by: 4096)).with(\.right, .either),
            Self(
                2, "moves-ranges-at-first", "sends another part twice, if asked for one, then the right one", size: size
            )
            .playing(.rangeShifted(by: 4096), .init(requests: 0..<2, hasRange: true)),
            Self(2, "hides-ranges", "sends 206 without Content-Range", size: size)
                .ranged(.noContentRange).with(\.right, .either),
            Self(2, "garbles-ranges", "sends 206 with a malformed Content-Range", size: size)
                .ranged(.contentRange("bytes 0-x/y")).with(\.right, .either),
            Self(2, "mislabels-ranges", "says of the right part that it is another", size: size)
                .ranged(.contentRangeShifted(by: 4096)).with(\.right, .either),
            Self(3, "sends-less", "sends 64 KiB of every range", size: size).ranged(.shortRange(bytes: 1 << 16)),
            Self(4, "sends-more", "sends 100 bytes more than it announced", size: size).always(.surplus(bytes: 100)),
            Self(5, "announces-less", "announces 100 bytes less than the range has", size: size)
                .ranged(.contentLengthOff(by: -100)).with(\.right, .either),
            Self(5, "announces-more-at-first", "announces 100 bytes more than it sends, twice", size: size)
                .first(2, .contentLengthOff(by: 100)),
            Self(7, "multipart", "answers a range request with multipart/byteranges", size: size)
                .ranged(.multipartByteRanges).with(\.right, .either),
            Self(16, "unsatisfiable", "answers 416 to the second and third request, if for a range", size: size)
                .playing(.rangeNotSatisfiable, .init(requests: 1..<3, hasRange: true)),
            Self(17, "empty", "serves an empty file", size: 0),
            Self(18, "refuses-head", "answers 405 to HEAD", size: size).always(.refuseHead),
            Self(18, "lies-in-head", "says in HEAD that the file has 10 bytes", size: size)
                .always(.lieInHead(contentLength: 10)),
            Self(19, "denies-ranges", "says Accept-Ranges: none, and serves ranges", size: size)
                .always(.acceptRanges("none")),
            Self(19, "promises-ranges", "says Accept-Ranges: bytes, and serves none", size: size)
                .always(.ignoreRange, .acceptRanges("bytes")),
        ]
    }

    /// Changes of a file while it is fetched (6, 8–12, 29, 30).
    private static func versions(_ size: Int64) -> [Self] {
        let half = size / 2
        let sameETag = "\"constant\""
        return [
            Self(6, "changes", "serves a new version from the second request on", size: size)
                .changing { .init($0) },
            Self(6, "changes-after-a-break", "breaks off, and has a new version then", size: size)
                .first(1, .truncated(afterBytes: half)).changing { .init($0) },
            Self(8, "changes-unconditionally", "breaks off, has a new version then, and ignores If-Range", size: size)
                .first(1, .truncated(afterBytes: half)).changing { .init($0) }.always(.ignoreIfRange),
            Self(9, "weak", "has a weak ETag only", size: size).always(.weakETag, .lastModified(nil)),
            Self(9, "changes-weakly", "breaks off, and has a new version with another weak ETag", size: size)
                .first(1, .truncated(afterBytes: half))
                .changing { .init($0, etag: "W/\"2\"", lastModified: nil) }.always(.ignoreIfRange),
            Self(10, "mistrusts", "answers 200 to every If-Range", size: size).always(.mistrustIfRange),
            Self(11, "nodes", "has several nodes with an ETag each", size: size)
                .always(.nodes([.init(etag: "\"n1\""), .init(etag: "\"n2\""), .init(etag: "\"n3\"")], seed: 11))
                .with(\.right, .either),
            Self(12, "unnamed", "has neither ETag nor Last-Modified", size: size).always(.noValidators),
            Self(12, "changes-unnamed", "breaks off, and has a new version then, without validators", size: size)
                .first(1, .truncated(afterBytes: half)).changing { .init($0) }.always(.noValidators),
            Self(29, "stale-cache", "is a cache that mixes two versions under one ETag, and heeds no-cache", size: size)
                .mixing(etag: sameETag, heedsNoCache: true),
            Self(29, "broken-cache", "is a cache that mixes two versions under one ETag", size: size)
                .mixing(etag: sameETag, heedsNoCache: false).with(\.right, .either),
            Self(30, "other-mirror", "has a mirror with other bytes of the same size", size: size)
                .with(\.hasMirror, true).with(\.needsDigest, true),
        ]
    }

    /// The first version is the one that a cache should have; a digest that a program is given is of that version.
    private func mixing(etag: String, heedsNoCache: Bool) -> Self {
        let date = "Wed, 01 Jan 2020 00:00:00 GMT"
        let stale = ScriptedOrigin.File(
            Self.content(name, version: 1, size: size),
            etag: etag,
            lastModified: date
        )
        let fresh = ScriptedOrigin.File(content, etag: etag, lastModified: date)
        return always(.mixedCache([stale, fresh], seed: 29, heedsNoCache: heedsNoCache))
            .with(\.needsDigest, true).with(\.behavesAfter, nil)
    }

    /// How bodies are coded, framed and ended (13–15, 23, 28, 31).
    private static func bodies(_ size: Int64) -> [Self] {
        let half = size / 2
        return [
            Self(13, "coded", "says that ranges are coded with gzip, which they are not", size: size)
                .ranged(.contentEncoding("gzip")).with(\.right, .either),
            Self(14, "chunked", "sends no length", size: size).always(.chunked),
            Self(14, "unterminated", "breaks off twice, having sent no length", size: size)
                .first(2, .chunkedUnterminated(afterBytes: half)),
            Self(14, "unframed", "ends the body by the end of the connection", size: size).always(.closeDelimited),
            Self(14, "unframed-and-short", "ends it too soon, without having sent a length", size: size)
                .always(.closeDelimited, .truncated(afterBytes: half), .ignoreRange).never()
                .with(\.needsDigest, true),
            Self(15, "breaks-off", "closes in the middle, three times", size: size)
                .first(3, .truncated(afterBytes: half / 2)),
            Self(15, "leaves-without-goodbye", "closes in the middle without TLS's goodbye, twice", size: size)
                .first(2, .uncleanClose(afterBytes: half)),
            Self(23, "resets", "resets in the middle, twice", size: size).first(2, .reset(afterBytes: half)),
            Self(23, "resets-streams", "resets the stream in the middle, twice", size: size)
                .first(2, .resetStream(afterBytes: half, code: 2)),
            Self(23, "goes-away", "says GOAWAY in the middle, and closes, twice", size: size)
                .first(2, .goAway(afterBytes: half, isFinished: false)),
            Self(28, "leaves-surplus", "sends what looks like a response after the response", size: size)
                .always(.surplus(bytes: 64)),
            Self(31, "two-lengths", "sends two lengths that differ, and closes", size: size)
                .always(.conflictingContentLengths, .truncated(afterBytes: size)).never(),
            Self(31, "negative-length", "sends a negative length", size: size).always(.negativeContentLength).never(),
            Self(31, "length-and-chunks", "sends a length and chunks", size: size)
                .always(.transferEncodingAndContentLength).with(\.right, .either),
            Self(31, "garbage", "answers in another protocol", size: size).always(.garbage("220 ready\r\n")).never(),
        ]
    }
}
