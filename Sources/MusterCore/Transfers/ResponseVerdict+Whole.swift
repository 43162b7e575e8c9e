extension ResponseVerdict {
    /// Rows 1, 10, 13, 14 and 17: a 200 (RFC 9110 §15.3.1). A server may ignore Range (§14.2).
    static func judgeWhole(_ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion) -> ResponseVerdict {
        if let refusal = wrongType(facts, question) { return refusal }
        // Length and digests are those of the coded content (RFC 9110 §8.6, RFC 9530 §3), which is not what is stored.
        let isDecoded = question.decodes && facts.contentCoding != nil
        let coding = question.decodes ? facts.contentCoding.flatMap { ContentCoding($0) } : nil
        // A decoded body is of use only from the first byte of the file on. A coded body of exactly the range's length may be a part.
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
            // Row 10; RFC 9110 §13.1.5: no stated value differs, and yet the condition failed.
            if question.conditional { return .askUnconditionally }
            // Row 1: a whole body belongs at offset 0, and never into a part file to which other leases write ranges.
            guard isRest || asked.start == 0 && !question.planned else {
                return .descend("the origin ignores Range", to: .stream)
            }
            // Some origins answer 200 and send the part that was asked for (RFC 9110 §15.3.7 wants 206): a plain GET shows whether this origin does.
            guard length != asked.count, facts.values("content-range").isEmpty else {
                return .descend("200 to a range request, with what may be a part", to: .whole)
            }
            // Pages to which range requests are redirected are examined after they have come (row 27). With an expected size such a page would fail the file.
            if question.expectedSize != nil, length == nil, facts.mayBePageElsewhere(size: nil) {
                return .descend("a redirect of the range request to a page", to: .whole)
            }
        } else if let refusal = partOfWhole(facts, length: length) {
            return refusal
        } else if question.kept > 0, !isRest {
            return refuse(.changed, "nothing tells that it is the content of which \(question.kept) bytes are there")
        }
        // Rows 13 and 14: coded content is stored as it was sent, and without a length the end of the stream is the end of the content.
        var body = AcceptedBody(
            offset: 0, count: length, representation: found, isSplittable: false, coding: coding)
        if isRest { body.skipped = question.kept }
        body.isCoded = facts.contentCoding != nil
        if isDecoded { body.codedDigests = Array(StatedDigests(facts).digests.values) }
        return .accept(body)
    }

    /// Whether a whole body surely is the content of the bytes that are kept. Then only the bytes behind them are taken.
    private static func goesOnBehindKept(
        _ found: Representation, _ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion
    ) -> Bool {
        question.kept > 0 && length != nil && length == question.known.size && facts.contentCoding == nil
            && facts.values("content-range").isEmpty
            && (question.known.isSurely(found) || question.isProvable)
    }

    /// Refuses a 200 to a plain GET that says that it is a part and is shorter than the whole. Content-Range has no meaning in a 200 (RFC 9110 §14.4).
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
            // As far as the validators show, the content is unchanged, and yet its bytes are refused.
            if question.planned, question.known.size == size, asked.start < size,
                question.known.agreement(with: found, under: question.effectiveRule).isNoChange
            {
                return .descend("416 to \(asked) of \(size) bytes", to: .stream)
            }
        }
        let size = content?.size.map(String.init) ?? "unknown"
        return refuse(.changed, "the range \(asked) is not satisfiable any more, the size is \(size)")
    }

    /// Whether the content that ends where the durable bytes end is the content of those bytes. If its size was not known before, a shorter
    /// content that took its place could end there by chance. Then a validator, a digest or the condition has to confirm it (an origin
    /// answers 416 to If-Range only if the validator matched, RFC 9110 §13.1.5).
    private static func isStill(_ found: Representation, _ question: FetchQuestion) -> Bool {
        switch question.known.agreement(with: found, under: question.effectiveRule) {
        case .same: true
        case .different: false
        case .unknown:
            question.known.size != nil || question.expectedSize != nil || question.conditional || question.isProvable
        }
    }
}
