import MusterCore

private let tag = "ETag: \"v1\""

extension OriginRow {
    /// Rows 12 to 31: bodies, lengths and statuses.
    static let bodies: [OriginRow] = [
        OriginRow(
            12,
            "has no validator and more to come",
            206,
            ["Content-Range: bytes 0-99/1000"],
            to: .first,
            .descend(.whole)
        ),
        OriginRow(
            12,
            "has no validator but a digest is expected",
            206,
            ["Content-Range: bytes 0-99/1000"],
            to: .proven,
            .accept(offset: 0, count: 100, splittable: true)
        ),
        OriginRow(
            12,
            "has no validator and one chunk is all",
            206,
            ["Content-Range: bytes 0-49/50"],
            to: .first,
            .accept(offset: 0, count: 50, splittable: false)
        ),
        OriginRow(
            12,
            "has no validator in the middle but a digest is expected",
            206,
            ["Content-Range: bytes 100-199/1000"],
            to: .digested,
            .accept(offset: 100, count: 100, splittable: true)
        ),
        OriginRow(
            12,
            "forgets the validator that it had",
            206,
            ["Content-Range: bytes 100-199/1000"],
            to: .middle,
            .descend(.stream)
        ),
        OriginRow(
            12,
            "states another validator than it had",
            206,
            ["Content-Range: bytes 100-199/1000", "Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT"],
            to: .middle,
            .descend(.stream)
        ),

        OriginRow(
            13,
            "codes a 206",
            206,
            ["Content-Range: bytes 100-199/1000", "Content-Encoding: gzip", tag],
            to: .middle,
            .descend(.whole)
        ),
        OriginRow(
            13,
            "codes a 206 as identity",
            206,
            ["Content-Range: bytes 100-199/1000", "Content-Encoding: identity", tag],
            to: .middle,
            .accept(offset: 100, count: 100, splittable: true)
        ),
        OriginRow(
            13,
            "codes a 200",
            200,
            ["Content-Length: 400", "Content-Encoding: gzip", tag],
            to: .first,
            .accept(offset: 0, count: 400, splittable: false)
        ),
        OriginRow(
            13,
            "codes a 200 that is to be decoded, whose length and digests are those of the coded content",
            200,
            ["Content-Length: 400", "Content-Encoding: gzip", tag],
            to: .decoded,
            .accept(offset: 0, count: nil, splittable: false)
        ),
        OriginRow(
            13,
            "codes a 200 to a range request that is to be decoded",
            200,
            ["Content-Length: 400", "Content-Encoding: gzip", tag],
            to: .decodedRange,
            .accept(offset: 0, count: nil, splittable: false)
        ),
        OriginRow(
            13,
            "codes a 200 that is to be decoded, and may be the part that was asked for",
            200,
            ["Content-Length: 100", "Content-Encoding: gzip", tag],
            to: .decodedRange,
            .descend(.whole)
        ),
        OriginRow(
            14,
            "sends no length",
            200,
            ["Transfer-Encoding: chunked", tag],
            to: .first,
            .accept(offset: 0, count: nil, splittable: false)
        ),
        OriginRow(
            14,
            "sends no length to a plain GET",
            200,
            [],
            to: .stream,
            .accept(offset: 0, count: nil, splittable: false)
        ),
        OriginRow(
            14,
            "does not tell the size in a 206",
            206,
            ["Content-Range: bytes 0-99/*", tag],
            to: .first,
            .descend(.whole)
        ),
        OriginRow(
            14,
            "does not tell the size that is known",
            206,
            ["Content-Range: bytes 100-199/*", tag],
            to: .middle,
            .accept(offset: 100, count: 100, splittable: true)
        ),

        OriginRow(
            17,
            "serves an empty file",
            200,
            ["Content-Length: 0", tag],
            to: .stream,
            .accept(offset: 0, count: 0, splittable: false)
        ),

        OriginRow(
            22, "answers 203", 203, ["Content-Length: 1000"], to: .first,
            .accept(offset: 0, count: 1_000, splittable: false)),
        OriginRow(
            22, "answers 226", 226, ["Content-Length: 1000"], to: .first,
            .accept(offset: 0, count: 1_000, splittable: false)),
        OriginRow(
            22,
            "serves an empty file as a part of nothing",
            206,
            ["Content-Length: 0", "Content-Range: bytes */0", tag],
            to: .first,
            .accept(offset: 0, count: 0, splittable: false)
        ),
        OriginRow(22, "refuses If-Range by 412", 412, [], to: .conditional, .askUnconditionally),
        OriginRow(22, "refuses If-Range by 400", 400, [], to: .conditional, .askUnconditionally),
        OriginRow(22, "refuses Range by 400", 400, [], to: .middle, .refuse(.httpStatus(400))),

        OriginRow(24, "limits by 403", 403, [], to: .middle, .refuse(.httpStatus(403))),
        OriginRow(25, "limits by 429", 429, ["Retry-After: 7"], to: .middle, .refuse(.httpStatus(429))),
        OriginRow(26, "answers 408", 408, [], to: .middle, .refuse(.httpStatus(408))),
        OriginRow(26, "answers 500", 500, [], to: .first, .refuse(.httpStatus(500))),
        OriginRow(26, "answers 520", 520, [], to: .first, .refuse(.httpStatus(520))),
        OriginRow(26, "answers 404", 404, [], to: .first, .refuse(.notFound)),
        OriginRow(26, "answers 410", 410, [], to: .first, .refuse(.notFound)),
        OriginRow(26, "answers 451", 451, [], to: .first, .refuse(.notFound)),
        OriginRow(26, "answers 401", 401, [], to: .first, .refuse(.authentication)),
        OriginRow(26, "answers 418", 418, [], to: .first, .refuse(.httpStatus(418))),
        OriginRow(22, "answers 204 to a range", 204, [], to: .first, .descend(.whole)),
        OriginRow(22, "answers 304 to a range", 304, [], to: .first, .descend(.whole)),
        OriginRow(26, "answers 204", 204, [], to: .stream, .refuse(.httpStatus(204))),
        OriginRow(26, "answers 304", 304, [], to: .stream, .refuse(.httpStatus(304))),
        OriginRow(20, "redirects without saying where", 302, [], to: .first, .refuse(.httpStatus(302))),

        OriginRow(
            27,
            "sends an error page of another size with 200",
            200,
            ["Content-Length: 512", "Content-Type: text/html"],
            to: .sized,
            .refuse(.sizeMismatch)
        ),
        OriginRow(
            27,
            "has a range of a file of another size",
            206,
            ["Content-Range: bytes 0-99/999", tag],
            to: .sized,
            .refuse(.sizeMismatch)
        ),
        OriginRow(
            27,
            "has the size that was expected",
            206,
            ["Content-Range: bytes 0-99/1000", tag],
            to: .sized,
            .accept(offset: 0, count: 100, splittable: true)
        ),

        OriginRow(
            31,
            "has conflicting lengths",
            200,
            ["Content-Length: 5", "Content-Length: 6"],
            to: .stream,
            .descend(.stream)
        ),
        OriginRow(31, "has a plus before its length", 200, ["Content-Length: +5"], to: .first, .descend(.stream)),
        OriginRow(
            31, "has a plus before its length on the last rung", 200, ["Content-Length: +5"], to: .stream,
            .accept(offset: 0, count: 5, splittable: false)),
        OriginRow(
            31, "has a semicolon behind its length on the last rung", 200, ["Content-Length: 5;"], to: .stream,
            .accept(offset: 0, count: 5, splittable: false)),
        OriginRow(31, "has a negative length", 200, ["Content-Length: -1"], to: .stream, .descend(.stream)),
        OriginRow(
            31,
            "has a length and a transfer coding",
            200,
            ["Content-Length: 5", "Transfer-Encoding: chunked"],
            to: .first,
            .descend(.stream)
        ),
        OriginRow(
            31,
            "has a length and a transfer coding, which counts if nothing else was asked for",
            200,
            ["Content-Length: 5", "Transfer-Encoding: chunked"],
            to: .stream,
            .accept(offset: 0, count: nil, splittable: false)
        ),
        OriginRow(
            5,
            "has fewer bytes than it said",
            200,
            ["Content-Length: 999"],
            to: FetchQuestion(range: nil, planned: false, known: Representation(), claimedSize: 1_000),
            .descend(.whole)
        ),
        OriginRow(
            5,
            "has grown since it said its size",
            200,
            ["Content-Length: 1001"],
            to: FetchQuestion(range: nil, planned: false, known: Representation(), claimedSize: 1_000),
            .accept(offset: 0, count: 1_001, splittable: false)
        ),
        OriginRow(
            31,
            "has a length that would overflow",
            206,
            ["Content-Range: bytes 0-99/9223372036854775807", "Content-Length: 100", tag],
            to: .first,
            .descend(.stream)
        ),
    ]
}
