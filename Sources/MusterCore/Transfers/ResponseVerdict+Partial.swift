extension ResponseVerdict {
    /// Rows 2–5, 7, 12 and 13: what a 206 (RFC 9110 §15.3.7) carries.
    static func judgePartial(_ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion) -> ResponseVerdict {
        guard let asked = question.range else { return judgeUnasked(facts, length: length, question) }
        // Row 13: a range of coded content has other bytes than a range of the file (RFC 9110 §8.4).
        if let coding = facts.contentCoding {
            return .descend("206 with Content-Encoding \(coding.quoted)", to: .whole)
        }
        // Row 7; RFC 9110 §14.6.
        if facts.values("content-type").contains(where: { $0.lowercased().hasPrefix("multipart/byteranges") }) {
            return .descend("206 with several ranges", to: .stream)
        }
        if let refusal = wrongType(facts, question) { return refusal }
        // Row 2; RFC 9110 §14.4.
        let stated = facts.values("content-range")
        let content = stated.count == 1 ? ContentRange(stated[0]) : nil
        // Row 22c: an empty file, sent as an empty part.
        if let content, content.size == 0, asked.start == 0, !question.planned, length ?? 0 == 0 {
            let nothing = facts.representation(size: 0)
            return foreignPage(nothing, facts, question) ?? otherContent(nothing, statedSize: 0, facts, question)
                ?? .accept(AcceptedBody(offset: 0, count: 0, representation: nothing, isSplittable: false))
        }
        guard let content, let range = content.range else {
            return .descend("206 with Content-Range \"\(stated.joined(separator: ", ").quoted)\"", to: .stream)
        }
        guard range.start == asked.start else {
            return .descend("206 starts at \(range.start), not at \(asked.start)", to: .stream)
        }
        // Row 5; RFC 9110 §15.3.7.1: the length is that of the range.
        if let length, length != range.count {
            return .descend("Content-Length \(length) for a range of \(range.count) bytes", to: .stream)
        }
        // Row 14: `*` for the size is allowed (RFC 9110 §14.4), but a plan can't be made from it.
        guard let size = content.size ?? question.known.size else {
            return .descend("the origin does not tell the size", to: .whole)
        }
        let found = facts.representation(size: size)
        // A mirror with other content is given up (row 30), so it is not checked for a page.
        if !question.isOtherMirror, let refusal = foreignPage(found, facts, question) { return refusal }
        if let refusal = otherContent(found, statedSize: content.size, facts, question) { return refusal }
        // Row 12: without a validator or a digest that tells versions apart, a range is accepted only if it holds the whole file.
        let isSplittable =
            found.tellsVersions || question.planned && question.known.tellsVersions || found.statesDigest
            || question.isProvable || question.mayChunkUnvalidated
        let fitsInOne = asked.start == 0 && range.end == size
        guard isSplittable || fitsInOne else {
            return .descend("the origin sends no validator that tells versions apart", to: .whole)
        }
        // Rows 3 and 4: fewer bytes than were asked for are accepted, more are cut off.
        return .accept(
            AcceptedBody(
                offset: range.start, count: min(range.end, asked.end) - range.start, representation: found,
                isSplittable: isSplittable))
    }

    /// Judges a 206 to a plain GET, which no origin has a reason to send. It counts as the whole file unless it says that it is a part, or
    /// its length differs from the size that is stated or known. A Content-Range that can't be read is ignored.
    private static func judgeUnasked(
        _ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion
    ) -> ResponseVerdict {
        let stated = facts.values("content-range").compactMap { ContentRange($0) }
        let content = stated.first
        let isWhole = content?.range.map { $0.start == 0 && $0.end == content?.size ?? length } ?? true
        guard isWhole, stated.allSatisfy({ $0 == content }),
            let size = content?.size ?? question.expectedSize ?? question.known.size ?? length, length == size,
            facts.contentCoding == nil
        else { return .descend("206 to a request without Range", to: .whole) }
        if let refusal = wrongType(facts, question) { return refusal }
        let found = facts.representation(size: size)
        if let refusal = foreignPage(found, facts, question) { return refusal }
        if let refusal = otherContent(found, statedSize: size, facts, question) { return refusal }
        return .accept(
            AcceptedBody(
                offset: 0, count: size, representation: found, isSplittable: false,
                mayBePart: content.map { $0.size == nil } ?? false))
    }
}
