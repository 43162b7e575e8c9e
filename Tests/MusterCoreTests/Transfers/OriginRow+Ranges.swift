import MusterCore

private let tag = "ETag: \"v1\""

extension OriginRow {
    /// Rows 1 to 10: ranges and validators.
    static let ranges: [OriginRow] = [
        OriginRow(
            1,
            "ignores Range at offset 0 of a task not yet planned",
            200,
            ["Content-Length: 1000", tag],
            to: .first,
            .accept(offset: 0, count: 1_000, splittable: false)
        ),
        OriginRow(
            1, "ignores Range in the middle", 200, ["Content-Length: 1000", tag], to: .middle, .descend(.stream)),
        OriginRow(
            1,
            "ignores Range at offset 0 of a planned task",
            200,
            ["Content-Length: 1000", tag],
            to: .again,
            .descend(.stream)
        ),
        OriginRow(
            1, "ignores Range where one request is to bring all the rest", 200, ["Content-Length: 1000", tag],
            to: .rest,
            .accept(offset: 0, count: 1_000, splittable: false)),
        OriginRow(
            1, "ignores If-Range and Range where one request is to bring all the rest", 200,
            ["Content-Length: 1000", tag],
            to: .rest(conditional: true), .askUnconditionally),
        OriginRow(
            1, "ignores Range, and states no length", 200, [tag], to: .rest, .descend(.stream)),
        OriginRow(
            1, "ignores Range, and codes the content", 200, ["Content-Length: 1000", "Content-Encoding: gzip", tag],
            to: .rest,
            .descend(.stream)),
        OriginRow(
            1, "answers 200 with Content-Range where one request is to bring all the rest", 200,
            ["Content-Length: 1000", "Content-Range: bytes 100-999/1000", tag], to: .rest, .descend(.stream)),
        OriginRow(
            1,
            "answers 200 with as many bytes as were asked for",
            200,
            ["Content-Length: 100", tag],
            to: .first,
            .descend(.whole)
        ),
        OriginRow(
            1, "answers 200 with nothing", 200, ["Content-Length: 0", tag], to: .first,
            .accept(offset: 0, count: 0, splittable: false)),
        OriginRow(
            1,
            "answers 200 with Content-Range",
            200,
            ["Content-Length: 1000", "Content-Range: bytes 0-99/1000", tag],
            to: .first,
            .descend(.whole)
        ),
        OriginRow(
            1,
            "answers 200 to a plain GET, and says that it is a part",
            200,
            ["Content-Length: 100", "Content-Range: bytes 0-99/1000", tag],
            to: .stream,
            .descend(.whole)
        ),
        OriginRow(
            1,
            "answers 200 to a plain GET, and says which part that is: all",
            200,
            ["Content-Length: 1000", "Content-Range: bytes 0-999/1000", tag],
            to: .stream,
            .accept(offset: 0, count: 1_000, splittable: false)
        ),
        OriginRow(
            2,
            "answers 206 to a plain GET, and says that it is all",
            206,
            ["Content-Length: 1000", "Content-Range: bytes 0-999/1000", tag],
            to: .stream,
            .accept(offset: 0, count: 1_000, splittable: false)
        ),
        OriginRow(
            2,
            "answers 206 to a plain GET, and says that it is a part",
            206,
            ["Content-Length: 100", "Content-Range: bytes 0-99/1000", tag],
            to: .stream,
            .descend(.whole)
        ),
        OriginRow(
            2, "answers 206 to a plain GET, and says nothing but a length", 206, ["Content-Length: 1000", tag],
            to: .stream,
            .accept(offset: 0, count: 1_000, splittable: false)),
        OriginRow(
            2, "answers 206 to a plain GET, and does not say of how much", 206,
            ["Content-Length: 1000", "Content-Range: bytes 0-999/*", tag], to: .stream,
            .accept(offset: 0, count: 1_000, splittable: false)),
        OriginRow(
            2, "answers 206 to a plain GET, and says that it is a part of something", 206,
            ["Content-Length: 1000", "Content-Range: bytes 0-998/*", tag], to: .stream, .descend(.whole)),
        OriginRow(
            2, "answers 206 to a plain GET, and copies the Range", 206,
            ["Content-Length: 1000", "Content-Range: bytes=0-999/1000", tag], to: .stream,
            .accept(offset: 0, count: 1_000, splittable: false)),
        OriginRow(2, "answers 206 to a plain GET, and says nothing", 206, [tag], to: .stream, .descend(.whole)),
        OriginRow(
            2, "answers 206 to a plain GET, and says that it is all, twice", 206,
            ["Content-Length: 1000", "Content-Range: bytes 0-999/1000", "Content-Range: bytes 0-999/1000", tag],
            to: .stream, .accept(offset: 0, count: 1_000, splittable: false)),
        OriginRow(
            2, "answers 206 to a plain GET, and says two things", 206,
            ["Content-Length: 1000", "Content-Range: bytes 0-999/1000", "Content-Range: bytes 0-999/2000", tag],
            to: .stream, .descend(.whole)),
        OriginRow(
            2, "answers 206 to a plain GET, and names another size", 206,
            ["Content-Length: 1000", "Content-Range: bytes */2000", tag], to: .stream, .descend(.whole)),
        OriginRow(
            2, "answers 206 to a plain GET with another length than is known", 206, ["Content-Length: 999", tag],
            to: FetchQuestion(range: nil, planned: false, known: Representation(), expectedSize: 1_000),
            .descend(.whole)),
        OriginRow(
            2,
            "answers 206 to a plain GET, and the size is known",
            206,
            ["Content-Length: 1000", tag],
            to: FetchQuestion(range: nil, planned: false, known: Representation(), expectedSize: 1_000),
            .accept(offset: 0, count: 1_000, splittable: false)
        ),

        OriginRow(
            2,
            "starts elsewhere",
            206,
            ["Content-Range: bytes 0-99/1000", tag],
            to: .middle,
            .descend(.stream)
        ),
        OriginRow(
            2,
            "starts one byte late",
            206,
            ["Content-Range: bytes 101-199/1000", tag],
            to: .middle,
            .descend(.stream)
        ),
        OriginRow(2, "has no Content-Range", 206, [tag], to: .middle, .descend(.stream)),
        OriginRow(
            2,
            "has a malformed Content-Range",
            206,
            ["Content-Range: bytes 100-199", tag],
            to: .middle,
            .descend(.stream)
        ),
        OriginRow(
            2,
            "has a Content-Range without a range",
            206,
            ["Content-Range: bytes */1000", tag],
            to: .middle,
            .descend(.stream)
        ),
        OriginRow(
            2,
            "has two Content-Ranges",
            206,
            ["Content-Range: bytes 100-199/1000", "Content-Range: bytes 100-199/1000", tag],
            to: .middle,
            .descend(.stream)
        ),
        OriginRow(
            2,
            "answers 206 to a plain GET",
            206,
            ["Content-Range: bytes 0-99/1000", tag],
            to: .stream,
            .descend(.whole)
        ),
        OriginRow(
            2,
            "has a range past its own size",
            206,
            ["Content-Range: bytes 100-199/150", tag],
            to: .middle,
            .descend(.stream)
        ),

        OriginRow(
            3,
            "sends what was asked",
            206,
            ["Content-Range: bytes 100-199/1000", "Content-Length: 100", tag],
            to: .middle,
            .accept(offset: 100, count: 100, splittable: true)
        ),
        OriginRow(
            3,
            "sends less",
            206,
            ["Content-Range: bytes 100-149/1000", "Content-Length: 50", tag],
            to: .middle,
            .accept(offset: 100, count: 50, splittable: true)
        ),
        OriginRow(
            3,
            "sends a short last chunk",
            206,
            ["Content-Range: bytes 0-59/60", "Content-Length: 60", tag],
            to: .first,
            .accept(offset: 0, count: 60, splittable: true)
        ),
        OriginRow(
            4,
            "sends more than was asked",
            206,
            ["Content-Range: bytes 100-999/1000", "Content-Length: 900", tag],
            to: .middle,
            .accept(offset: 100, count: 100, splittable: true)
        ),
        OriginRow(
            5,
            "has a Content-Length that disagrees with the range",
            206,
            ["Content-Range: bytes 100-199/1000", "Content-Length: 99", tag],
            to: .middle,
            .descend(.stream)
        ),

        OriginRow(
            6,
            "has another size now",
            206,
            ["Content-Range: bytes 100-199/2000", tag],
            to: .middle,
            .refuse(.changed)
        ),
        OriginRow(
            6,
            "has another strong tag now",
            206,
            ["Content-Range: bytes 100-199/1000", "ETag: \"v2\""],
            to: .middle,
            .refuse(.changed)
        ),
        OriginRow(
            6,
            "has another date now",
            206,
            ["Content-Range: bytes 100-199/1000", "Last-Modified: Mon, 02 Mar 2026 12:00:00 GMT"],
            to: .byDate,
            .refuse(.changed)
        ),
        OriginRow(
            6,
            "has the same date still",
            206,
            [
                "Content-Range: bytes 100-199/1000", "Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT",
                "Date: Tue, 03 Mar 2026 12:00:00 GMT",
            ],
            to: .byDate,
            .accept(offset: 100, count: 100, splittable: true)
        ),
        OriginRow(
            6,
            "has another tag in a 200",
            200,
            ["Content-Length: 1000", "ETag: \"v2\""],
            to: .middle,
            .refuse(.changed)
        ),
        OriginRow(
            7,
            "answers several ranges",
            206,
            ["Content-Type: Multipart/ByteRanges; boundary=x", "Content-Range: bytes 100-199/1000", tag],
            to: .middle,
            .descend(.stream)
        ),
        OriginRow(
            8,
            "has a strong tag that agrees under If-Range",
            206,
            ["Content-Range: bytes 100-199/1000", tag],
            to: .conditional,
            .accept(offset: 100, count: 100, splittable: true)
        ),
        OriginRow(
            8,
            "ignores If-Range and sends the changed content",
            206,
            ["Content-Range: bytes 100-199/1000", "ETag: \"v2\""],
            to: .conditional,
            .refuse(.changed)
        ),
        OriginRow(
            9,
            "has a weak tag that differs",
            206,
            ["Content-Range: bytes 100-199/1000", "ETag: W/\"v2\""],
            to: .middle,
            .refuse(.changed)
        ),
        OriginRow(
            10,
            "mistrusts If-Range although nothing changed",
            200,
            ["Content-Length: 1000", tag],
            to: .conditional,
            .askUnconditionally
        ),
        OriginRow(
            10,
            "answers 200 to If-Range since it changed",
            200,
            ["Content-Length: 1000", "ETag: \"v2\""],
            to: .conditional,
            .refuse(.changed)
        ),
    ]

    /// Rows 1 and 2: plain GETs that are answered by the whole file, under a Content-Range that does not say so.
    static let wholes: [OriginRow] =
        [
            "bytes 0-1000/1000", "bytes 1-1000/1000", "0-999/1000", "bytes */1000", "items 0-1/2",
            "bytes  0 - 999 / 1000", "bytes 0-999/0", "0-0/0", "/-1",
        ].map {
            OriginRow(
                2, "answers 206 to a plain GET with Content-Range \"\($0)\"", 206,
                ["Content-Length: 1000", "Content-Range: \($0)", tag], to: .stream,
                .accept(offset: 0, count: 1_000, splittable: false))
        }
        + ["bytes 0-9/10", "bytes 0-998/*", "bytes 900-999/1000", "bytes 0-1000/1000"].map {
            OriginRow(
                1, "answers 200 to a plain GET with Content-Range \"\($0)\"", 200,
                ["Content-Length: 1000", "Content-Range: \($0)", tag], to: .stream,
                .accept(offset: 0, count: 1_000, splittable: false))
        }
}
