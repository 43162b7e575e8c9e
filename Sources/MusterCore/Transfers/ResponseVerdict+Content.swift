extension ResponseVerdict {
    /// Row 27; RFC 9110 §8.3: an error page that comes as a success has another type than the file. A source that sends it is refused. A
    /// response that states no type is not refused for it.
    static func wrongType(_ facts: ResponseFacts, _ question: FetchQuestion) -> ResponseVerdict? {
        guard let expected = question.expectedContentType, let found = facts.mediaType, found != expected.lowercased()
        else { return nil }
        let what = "the origin sends \(found.quoted), not \(expected)"
        // Some origins send such a page to range requests alone: a plain GET shows whether this origin does.
        return question.range == nil || question.planned
            ? refuse(.httpStatus(facts.status), what) : .descend(what, to: .whole)
    }

    /// Rows 6, 8–11, 27, 29, 30 and 35: refuses a response that is not of the requested content, or can't be shown to be. Validators are
    /// compared with every response, since If-Range may be ignored, and a cache may mix versions.
    ///
    /// - Parameters:
    ///   - found: what the response says; a size that it doesn't state is filled in from what is known.
    ///   - statedSize: the whole size if the response itself states it.
    static func otherContent(
        _ found: Representation, statedSize: Int64?, _ facts: ResponseFacts, _ question: FetchQuestion
    ) -> ResponseVerdict? {
        if let expected = question.expectedSize, let size = found.size, size != expected {
            return wrongSize(size, expected: expected)
        }
        if question.isOtherMirror { return otherMirror(found, statedSize: statedSize, question) }
        switch question.known.agreement(with: found, under: question.effectiveRule) {
        case .same
        where facts.status == 206 && question.known.isWeakened(by: found) && !question.isProvable:
            // RFC 9110 §15.3.7: a part has the strong tag of its content. Without it, or with a weaker validator, nothing tells two versions apart. In answer
            // to If-Range the date may be left out.
            return question.conditional && question.known.strongETag == nil && found.lastModified == nil
                ? .askUnconditionally : .descend("a part without the strong validator that is known", to: .stream)
        case .same: return nil
        case .different(let what): return refuse(.changed, what)
        case .unknown:
            // A response without a validator can't be shown to be of this content, since its version has one.
            guard question.known.hasValidator, !question.isProvable else { return nil }
            let what = "the response states none of the validators that are known"
            // A 206 answers the range that was asked for. A whole body that may be a page (row 27) was rejected before, by `foreignPage`.
            if facts.status == 206 { return .descend(what, to: .stream) }
            // Row 10: without the condition a part with validators may come, such as from another node.
            return question.conditional ? .askUnconditionally : refuse(.changed, what)
        }
    }

    /// Row 27: refuses a response that may be something in place of the content, such as an error page, whatever its status is. It is
    /// refused if it does not say that it is another version, although the content has validators or had another size before. The refusal
    /// starts nothing over.
    static func foreignPage(
        _ found: Representation, _ facts: ResponseFacts, _ question: FetchQuestion
    ) -> ResponseVerdict? {
        guard !question.isProvable else { return nil }
        if question.known.hasValidator {
            let agreement = question.known.agreement(with: found, under: question.effectiveRule)
            // A response with validators is not doubted: another size under the same validators is a change (row 6).
            guard !found.hasValidator, agreement != .same, mayStandInPlace(found, of: question.known.size, facts) else {
                return nil
            }
            if case .different(let difference) = agreement { return doubted("is something else: \(difference)") }
            return doubted("nothing tells that it is the file")
        }
        // The size with which this version began is not doubted again. If the head states no size, the content is judged at the end of the body.
        guard let size = found.size, size != question.known.size else { return nil }
        return doubt(size, of: found, isPage: facts.isHTML, question)
    }

    /// Row 27: doubts a content of `size` bytes if a version that was given up had more, or more of it had come. A larger content is
    /// doubted only if it is a page, since files such as logs grow.
    public static func doubt(
        _ size: Int64, of found: Representation, isPage: Bool, _ question: FetchQuestion
    ) -> ResponseVerdict? {
        guard let earlier = question.earlier else { return nil }
        let what = earlier.doubt(size, of: found, from: question.source, isLastTry: question.isLastTry)
        if let what { return doubted(what) }
        guard isPage, !found.hasValidator, let before = earlier.size, size > before else { return nil }
        return doubted("\(size) bytes, where the origin had \(before) before")
    }

    private static func doubted(_ what: String) -> ResponseVerdict {
        refuse(.network, "the response states no other validator, and \(what)")
    }

    /// Whether a whole body that does not say that it is another version may stand in place of a content of `size` bytes: it states a
    /// smaller size, or it may be a page. A body of exactly that size is the file.
    private static func mayStandInPlace(_ found: Representation, of size: Int64?, _ facts: ResponseFacts) -> Bool {
        guard let stated = found.size, stated != size else { return found.size == nil && facts.isTextual }
        return facts.isTextual || size.map { stated < $0 } ?? false
    }

    static func wrongSize(_ size: Int64, expected: Int64) -> ResponseVerdict {
        refuse(.sizeMismatch, "expected \(expected) bytes, the origin has \(size)")
    }

    /// Row 30: bytes of another mirror are of this content only if the sizes agree, and a strong ETag or a digest does. Dates and weak tags
    /// of two servers can't be compared. The kind is `changed`. The coordinator's store knows that the source is not the version's own, and
    /// gives up that source for this version.
    private static func otherMirror(
        _ found: Representation, statedSize: Int64?, _ question: FetchQuestion
    ) -> ResponseVerdict? {
        let known = question.known
        guard let size = statedSize else { return refuse(.changed, "the mirror does not tell its size") }
        guard size == known.size else {
            return refuse(.changed, "the mirror has \(size) bytes, not \(known.size.map(String.init) ?? "as many")")
        }
        let digests = Representation(digests: known.digests).agreement(with: Representation(digests: found.digests))
        switch digests {
        case .same: return nil
        case .different(let what): return refuse(.changed, "the mirror has another digest: \(what)")
        case .unknown: break
        }
        if question.isProvable { return nil }
        if let etag = known.strongETag, etag == found.strongETag { return nil }
        return refuse(.changed, "nothing tells that the mirror has the same content")
    }
}
