extension ResponseVerdict {
    /// Rows 1, 10, 13, 14 and 17: a 200 (RFC 9110 §15.3.1). A server may ignore Range (§14.2).
    static func judgeWhole(_ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion) -> ResponseVerdict {
        if let refusal = wrongType(facts, question) { return refusal }
        // Length and digests are those of the coded content (RFC 9110 §8.6, RFC 9530 §3), which is not what is stored.
        let isDecoded = question.decodes && facts.contentCoding != nil
        let coding = question.decodes ? facts.contentCoding.flatMap { ContentCoding($0) } : nil
        // What is decoded begins with the first byte of the file, or is of no use; and it may be a part whose end was asked for.
        if isDecoded, let asked = question.range, question.planned || asked.start > 0 || asked.count == length {
            return .descend("the content is coded", to: .whole)
        }
        if isDecoded, coding == nil {
            return refuse(.badRange, "Content-Encoding \"\(facts.contentCoding?.quoted ?? "")\" can't be decoded")
        }
        let length = isDecoded ? nil : length
        var found = facts.representation(size: length)
        if isDecoded { found.digests = nil }
        if let refusal = foreignPage(found, facts, question) { return refusal }
        if let refusal = otherContent(found, statedSize: length, facts, question) { return refusal }
        if let claimed = question.claimedSize, let length, length < claimed, facts.contentCoding == nil {
            return .descend("\(length) bytes of a file that was said to have \(claimed)", to: .whole)
        }
        let isRest = goesOnBehindKept(found, facts, length: length, question)
        if let asked = question.range {
            // Row 10; RFC 9110 §13.1.5: nothing that is stated differs, and yet the condition failed.
            if question.conditional { return .askUnconditionally }
            // Row 1: a whole body belongs at offset 0, and never into a part that others write to by ranges.
            guard isRest || asked.start == 0 && !question.planned else {
                return .descend("the origin ignores Range", to: .stream)
            }
            // Some answer 200 and send the part that was asked for (RFC 9110 §15.3.7 wants 206): a plain GET tells.
            guard length != asked.count, facts.values("content-range").isEmpty else {
                return .descend("200 to a range request, with what may be a part", to: .whole)
            }
            // A page that requests with a Range are redirected to is examined when it has come (row 27), unless its size would fail the file.
            if question.expectedSize != nil, length == nil, facts.mayBePageElsewhere(size: nil) {
                return .descend("a redirect of the range request to a page", to: .whole)
            }
        } else if let refusal = partOfWhole(facts, length: length) {
            return refusal
        } else if question.kept > 0, !isRest {
            return refuse(.changed, "nothing tells that it is the content of which \(question.kept) bytes are there")
        }
        // Rows 13 and 14: coded content is stored as it was sent, and without a length the end of the stream tells.
        var body = AcceptedBody(
            offset: 0, count: length, representation: found, isSplittable: false, coding: coding)
        if isRest { body.skipped = question.kept }
        body.isCoded = facts.contentCoding != nil
        if isDecoded { body.codedDigests = Array(StatedDigests(facts).digests.values) }
        return .accept(body)
    }

    /// Whether a whole body surely is the content of which some bytes are there: what follows them is taken, instead of all once more.
    private static func goesOnBehindKept(
        _ found: Representation, _ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion
    ) -> Bool {
        question.kept > 0 && length != nil && length == question.known.size && facts.contentCoding == nil
            && facts.values("content-range").isEmpty
            && (question.known.isSurely(found) || question.isProvable)
    }

    /// A 200 to a plain GET that says that it is a part, and is shorter than what that would be one of. Content-Range means nothing there (RFC 9110 §14.4).
    private static func partOfWhole(_ facts: ResponseFacts, length: Int64?) -> ResponseVerdict? {
        for field in facts.values("content-range") {
            guard let content = ContentRange(field), let range = content.range else { continue }
            guard length ?? range.count >= content.size ?? range.end else {
                return .descend("200 with Content-Range \"\(field.quoted)\"", to: .whole)
            }
        }
        return nil
    }

    /// Row 16: a 416 (RFC 9110 §15.5.17).
    static func judgeUnsatisfiable(_ facts: ResponseFacts, _ question: FetchQuestion) -> ResponseVerdict {
        guard let asked = question.range else { return refuse(.httpStatus(416), "416 to a request without Range") }
        if asked.start == 0, !question.planned { return .descend("416 to a range from the first byte on", to: .whole) }
        let stated = facts.values("content-range")
        let content = stated.count == 1 ? ContentRange(stated[0]) : nil
        if let size = content?.size, content?.range == nil {
            if let expected = question.expectedSize, size != expected { return wrongSize(size, expected: expected) }
            let found = facts.representation(size: size)
            if asked.start == size, size > 0, isStill(found, question) { return .complete }
            // The content is what it was, as far as anything tells, and yet its bytes are not given.
            if question.planned, question.known.size == size, asked.start < size,
                question.known.agreement(with: found, under: question.effectiveRule).isNoChange
            {
                return .descend("416 to \(asked) of \(size) bytes", to: .stream)
            }
        }
        let size = content?.size.map(String.init) ?? "unknown"
        return refuse(.changed, "the range \(asked) is not satisfiable any more, the size is \(size)")
    }

    /// Whether the content that ends where the durable bytes end is the one that they are of. Where its size was not
    /// known before, a shorter content that took its place could end there by chance: then a validator, a digest or the
    /// condition has to speak for it (an origin answers 416 to If-Range only if the validator matched, RFC 9110
    /// §13.1.5).
    private static func isStill(_ found: Representation, _ question: FetchQuestion) -> Bool {
        switch question.known.agreement(with: found, under: question.effectiveRule) {
        case .same: true
        case .different: false
        case .unknown:
            question.known.size != nil || question.expectedSize != nil || question.conditional || question.isProvable
        }
    }
}
