import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

extension Row {
    /// Rows 1 to 13: ranges, validators, codings.
    static let first: [Row] = [
        Row(1, "a range request is always answered with 200") { stage in
            stage.file((.ignoreRange, .always)).checking { _, requests in
                // At the start of a task whose chunks aren't planned yet, the body is taken as a whole.
                #expect(requests.count == 1)
            }
        },
        Row(1, "ranges stop working after the first one") { stage in
            stage.file((.ignoreRange, .after(1))).checking { task, _ in #expect(task.contentVersion == 2) }
        },
        Row(2, "206 with another start, always") { $0.file((.contentRangeShifted(by: 1), .ranged)) },
        Row(2, "206 with the bytes of another start, always") {
            $0.file((.rangeShifted(by: 5), .ranged))
        },
        Row(2, "206 without Content-Range, now and then") { $0.file((.noContentRange, .first(2))) },
        Row(2, "206 with a malformed Content-Range, now and then") {
            $0.file((.contentRange("bytes 5-2/10"), .first(2)))
        },
        Row(2, "206 with a malformed Content-Range at one of two sources") { stage in
            let play = stage.file()
            stage.origin.serve("/bad", .init(.seeded(seed: 7, size: Stage.size)))
            stage.origin.misbehave("/bad", .contentRange("bytes"))
            return play.with { $0.task.urls.insert(stage.origin.url("/bad"), at: 0) }
        },
        Row(3, "206 for less than was asked") { $0.file((.shortRange(bytes: 300_000), .ranged)) },
        Row(4, "more body than announced") { $0.file((.surplus(bytes: 100), .always)) },
        Row(5, "Content-Length disagrees with the range, once") { $0.file((.contentLengthOff(by: 1), .first(1))) },
        Row(5, "Content-Length disagrees with the range, always") {
            // HTTP/2 itself calls it malformed (RFC 9113 §8.1.1).
            $0.file((.contentLengthOff(by: -1), .always)).failing(.badRange, .network)
        },
        Row(6, "another file from the second request on", of: .known) { stage in
            let other = ScriptedOrigin.Content.seeded(seed: 8, size: Stage.size - 5)
            let play = stage.file((.replaced(with: .init(other)), .after(1)))
            return play.with { $0.expected = .bytes([other.sha256()]) }.checking { task, _ in
                #expect(task.contentVersion == 2)
            }
        },
        Row(6, "another strong ETag with every request") { stage in
            let play = stage.file()
            for number in 0..<64 {
                stage.origin.misbehave(stage.path, .etag("\"\(number)\""), when: .init(requests: number..<(number + 1)))
            }
            // The fourth version is fetched by one plain GET.
            return play.checking { task, _ in #expect(task.contentVersion == 4) }
        },
        Row(7, "multipart/byteranges, once") { $0.file((.multipartByteRanges, .first(1))) },
        Row(7, "multipart/byteranges, always") { $0.file((.multipartByteRanges, .ranged)) },
        Row(8, "a strong ETag") { stage in
            stage.file(etag: "\"strong\"").checking { _, requests in
                #expect(requests.dropFirst().allSatisfy { $0.header("If-Range") == "\"strong\"" })
                // Never several ranges.
                #expect(requests.allSatisfy { !($0.range ?? "").contains(",") })
            }
        },
        Row(8, "If-Range is ignored, and the file is another one", of: .known) { stage in
            let other = ScriptedOrigin.Content.seeded(seed: 8, size: Stage.size)
            return stage.file((.ignoreIfRange, .always), (.replaced(with: .init(other)), .after(1)))
                .with { $0.expected = .bytes([other.sha256()]) }
        },
        Row(9, "a weak ETag, and a Last-Modified that is long ago") { stage in
            stage.file((.weakETag, .always)).checking { _, requests in
                #expect(requests.count > 1)
                #expect(requests.dropFirst().allSatisfy { $0.header("If-Range") == "Wed, 01 Jan 2020 00:00:00 GMT" })
            }
        },
        Row(9, "a weak ETag, and a Last-Modified of just now") { stage in
            stage.file((.weakETag, .always), (.date("Wed, 01 Jan 2020 00:00:30 GMT"), .always)).checking {
                _, requests in
                #expect(requests.allSatisfy { $0.header("If-Range") == nil })
            }
        },
        Row(10, "every If-Range is mistrusted") { stage in
            stage.file((.mistrustIfRange, .always)).checking { task, requests in
                #expect(requests.contains { $0.header("If-Range") == nil && $0.start > 0 && $0.status == 206 })
                #expect(task.contentVersion == 1)
            }
        },
        Row(11, "ETags that differ from node to node, and nothing else to go by") { stage in
            let play = stage.file(
                (.nodes([.init(etag: "\"a\""), .init(etag: "\"b\""), .init(etag: "\"c\"")], seed: 3), .always))
            // Which node answers, and so how many versions there are, is up to the nodes; the last version is fetched by a single request.
            return play.checking { task, _ in #expect(task.contentVersion > 1) }
        },
        Row(11, "ETags that differ from node to node, and size and digest are known") { stage in
            stage.file((.nodes([.init(etag: "\"a\""), .init(etag: "\"b\"")], seed: 3), .always)).with { play in
                guard case .bytes(let right) = play.expected, let digest = right.first else { return }
                play.task.digests = ["sha256": digest]
                play.policy.validators = .sizeAndDigest
            }.checking { task, _ in #expect(task.contentVersion == 1) }
        },
        Row(12, "no validator at all") { stage in
            stage.file((.noValidators, .always)).checking { _, requests in
                // One stream, without Range.
                #expect(requests.last?.range == nil)
            }
        },
        Row(12, "no validator, but a digest is expected") { stage in
            stage.file((.noValidators, .always)).with { play in
                if case .bytes(let right) = play.expected { play.task.digests = ["sha256": right.first ?? ""] }
            }.checking { _, requests in #expect(requests.count { $0.start > 0 } >= 2) }
        },
        Row(12, "no validator, but the group allows chunks all the same") { stage in
            stage.file((.noValidators, .always)).with { $0.policy.chunksWithoutValidator = true }
                .checking { _, requests in #expect(requests.count { $0.start > 0 } >= 2) }
        },
        Row(13, "a coded 206") { stage in
            stage.file((.contentEncoding("gzip"), .ranged)).checking { _, requests in
                #expect(requests.allSatisfy { $0.header("Accept-Encoding") == "identity" })
            }
        },
        Row(13, "a coded 200") { $0.file((.contentEncoding("gzip"), .always), (.ignoreRange, .always)) },
    ]
}
