import MusterTestSupport

/// What an origin does with the requests for one path.
struct FuzzDeeds: Sendable {
    /// A misbehaviour and the requests that it applies to.
    struct Deed: Sendable, CustomStringConvertible {
        let misbehaviour: ScriptedOrigin.Misbehaviour
        let condition: ScriptedOrigin.Condition

        var description: String { "\(misbehaviour) at \(condition.requests.map { "\($0)" } ?? "all")" }
    }

    /// The misbehaviours that are played.
    private(set) var played: [Deed] = []
    /// Contents that the file may rightly have in the end, because the origin served them.
    private(set) var contents: [ScriptedOrigin.Content] = []

    /// Chooses what happens to each of the first requests, and now and then to all of them.
    static func choose(
        for content: ScriptedOrigin.Content, _ witness: FuzzHistory.Witness, using random: inout SeededGenerator
    ) -> FuzzDeeds {
        var deeds = FuzzDeeds()
        if Int.random(in: 0..<8, using: &random) == 0, let habit = habits.randomElement(using: &random) {
            deeds.played.append(Deed(misbehaviour: habit, condition: .always))
        }
        for number in 0..<Int.random(in: 0...5, using: &random) where Int.random(in: 0..<10, using: &random) < 6 {
            guard let deed = deeds.single(content, witness, using: &random) else { continue }
            deeds.played.append(Deed(misbehaviour: deed, condition: .init(requests: number..<(number + 1))))
        }
        if Int.random(in: 0..<12, using: &random) == 0 {
            // From some request on, the origin serves another file.
            let other = ScriptedOrigin.Content.seeded(
                seed: random.next(), size: max(0, content.size + Int64.random(in: -1...1, using: &random) * 777))
            let first = Int.random(in: 1...4, using: &random)
            deeds.played.append(Deed(misbehaviour: .replaced(with: .init(other)), condition: .after(first)))
            deeds.contents.append(other)
        }
        return deeds
    }

    /// Permanent misbehaviours with which a file can still succeed.
    private static let habits: [ScriptedOrigin.Misbehaviour] = [
        .ignoreRange, .weakETag, .noValidators, .mistrustIfRange, .ignoreIfRange, .chunked, .closeDelimited,
        .refuseHead,
        .acceptRanges("none"), .shortRange(bytes: 300_000), .interim(103), .redirectChain(hops: 2, status: 302),
        .contentEncoding("gzip"), .lieInHead(contentLength: 7), .rangeNotSatisfiable, .noContentRange,
        .status(403, retryAfter: nil),
        .multipartByteRanges, .surplus(bytes: 10),
    ]

    /// A misbehaviour of a single request.
    private mutating func single(
        _ content: ScriptedOrigin.Content, _ witness: FuzzHistory.Witness, using random: inout SeededGenerator
    ) -> ScriptedOrigin.Misbehaviour? {
        let place = Int64.random(in: 0...max(1, content.size), using: &random)
        var choices: [ScriptedOrigin.Misbehaviour] = [
            .ignoreRange, .contentRangeShifted(by: 1), .contentRangeShifted(by: -1), .rangeShifted(by: 100),
            .noContentRange,
            .contentRange("bytes 5-2/10"), .contentRange("bytes */*"), .contentRange("octets 0-1/2"),
            .shortRange(bytes: 1 + place / 2),
            .surplus(bytes: 1), .surplus(bytes: 100_000), .multipartByteRanges, .weakETag, .mistrustIfRange,
            .ignoreIfRange,
            .noValidators, .contentEncoding("br"), .chunked, .chunkedUnterminated(afterBytes: place), .closeDelimited,
            .truncated(afterBytes: place), .reset(afterBytes: place), .rangeNotSatisfiable,
            .status(408, retryAfter: nil),
            .status(429, retryAfter: "0"), .status(500, retryAfter: nil), .status(503, retryAfter: "0"),
            .status(522, retryAfter: nil), .status(403, retryAfter: nil), .closeBeforeHeaders,
            .conflictingContentLengths,
            .negativeContentLength, .transferEncodingAndContentLength, .interim(102),
            .drip(bytes: 65_536, every: .milliseconds(1)),
            .redirectChain(hops: 12, status: 307), .etag("\"\(random.next())\""),
            .lastModified("Thu, 02 Jan 2020 00:00:00 GMT"),
            .rangeNotSatisfiableStating(total: nil), .resetBeforeHeaders, .garbage("SSH-2.0-OpenSSH_9.2p1\r\n"),
        ]
        // These take seconds each until a time limit ends them.
        if Int.random(in: 0..<8, using: &random) == 0 { choices += [.hang(afterBytes: place), .hangBeforeHeaders] }
        switch witness {
        case .none: break
        case .size: choices += [.htmlErrorPage, .totalSize(content.size + 5), .contentLengthOff(by: -1)]
        case .digest:
            choices += [
                .htmlErrorPage, .totalSize(max(0, content.size - 5)), .contentLengthOff(by: -1),
                .corruptByte(at: place / 2),
            ]
        }
        return choices.randomElement(using: &random)
    }
}
