extension ResponseVerdict {
    /// Rows 2–5, 7, 12 and 13: what a 206 (RFC 9110 §15.3.7) carries.
    static func judgePartial(_ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion) -> ResponseVerdict {
        guard let asked = question.range else { return refuse(.badRange, "206 to a request without Range") }
        // Row 13: a range of coded content is of other bytes than a range of the file (RFC 9110 §8.4).
        if let coding = facts.contentCoding {
            return refuse(.badRange, "206 with Content-Encoding \(coding.quoted)")
        }
        // Row 7; RFC 9110 §14.6.
        if facts.values("content-type").contains(where: { $0.lowercased().hasPrefix("multipart/byteranges") }) {
            return refuse(.badRange, "206 with several ranges")
        }
        if let refusal = wrongType(facts, question) { return refusal }
        // Row 2; RFC 9110 §14.4.
        let stated = facts.values("content-range")
        guard stated.count == 1, let content = ContentRange(stated[0]), let range = content.range else {
            return refuse(.badRange, "206 with Content-Range \"\(stated.joined(separator: ", ").quoted)\"")
        }
        guard range.start == asked.start else {
            return refuse(.badRange, "206 starts at \(range.start), not at \(asked.start)")
        }
        // Row 5; RFC 9110 §15.3.7.1: the length is that of the range.
        if let length, length != range.count {
            return refuse(.badRange, "Content-Length \(length) for a range of \(range.count) bytes")
        }
        // Row 14: `*` for the size is allowed (RFC 9110 §14.4), but a plan can't be made from it.
        guard let size = content.size ?? question.known.size else {
            return .restartAsStream("the origin does not tell the size")
        }
        let found = facts.representation(size: size)
        if let refusal = otherContent(found, statedSize: content.size, question) { return refusal }
        // Row 12: chunks that nothing tells apart are only fetched if all of the file fits into this one.
        let isSplittable =
            found.hasValidator || found.statesDigest || question.isProvable || question.mayChunkUnvalidated
        let fitsInOne = asked.start == 0 && range.end == size
        guard isSplittable || fitsInOne else { return .restartAsStream("the origin sends no validator") }
        // Rows 3 and 4: fewer bytes than were asked for are taken, more are cut.
        return .accept(
            AcceptedBody(
                offset: range.start, count: min(range.end, asked.end) - range.start, representation: found,
                isSplittable: isSplittable))
    }
}
