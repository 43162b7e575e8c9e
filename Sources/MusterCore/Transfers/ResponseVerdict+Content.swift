extension ResponseVerdict {
    /// Row 27; RFC 9110 §8.3: an error page that comes as a success is of another type than the file. A source that
    /// sends it will not do. What states no type is not refused for it.
    static func wrongType(_ facts: ResponseFacts, _ question: FetchQuestion) -> ResponseVerdict? {
        guard let expected = question.expectedContentType, let found = facts.mediaType, found != expected.lowercased()
        else { return nil }
        let what = "the origin sends \(found.quoted), not \(expected)"
        // Some have a page of theirs for requests with a Range alone: a plain GET tells.
        return question.range == nil || question.planned
            ? refuse(.httpStatus(facts.status), what) : .descend(what, to: .whole)
    }

    /// Rows 6, 8–11, 27, 29, 30 and 35: refuses what is not, or can't be told to be, the content that was asked for.
    /// Validators are compared with every response, since If-Range may be ignored, and a cache may mix versions.
    ///
    /// - Parameters:
    ///   - found: what the response says, and for a size that it doesn't state, what is known.
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
            // A response that states no validator although its version has one can't be told to be of this content.
            guard question.known.hasValidator, !question.isProvable else { return nil }
            let what = "the response states none of the validators that are known"
            // A 206 keeps to what was asked; a whole that may be a page in place of the content (row 27) does not come here.
            if facts.status == 206 { return .descend(what, to: .stream) }
            // Row 10: without the condition a part may come that states them, such as from another node.
            return question.conditional ? .askUnconditionally : refuse(.changed, what)
        }
    }

    /// Row 27: what does not say that it is another version, where the content has validators or had another size before, may be something in its place, such
    /// as an error page, whatever the status says that it is. Nothing starts over for that.
    static func foreignPage(
        _ found: Representation, _ facts: ResponseFacts, _ question: FetchQuestion
    ) -> ResponseVerdict? {
        guard !question.isProvable else { return nil }
        if question.known.hasValidator {
            let agreement = question.known.agreement(with: found, under: question.effectiveRule)
            // With the same validators it has another size now (row 6).
            guard !found.hasValidator, agreement != .same, mayStandInPlace(found, of: question.known.size, facts) else {
                return nil
            }
            if case .different(let difference) = agreement { return doubted("is something else: \(difference)") }
            return doubted("nothing tells that it is the file")
        }
        // What this version was begun with is not doubted again. Where no head states the size, the end of the body tells.
        guard let size = found.size, size != question.known.size else { return nil }
        return doubt(size, of: found, isPage: facts.isHTML, question)
    }

    /// Row 27: a content that has so many bytes, where a version that was given up had more, or more of it had come. A log grows: what is larger is doubted if
    /// it is a page.
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

    /// Whether a whole body that does not say that it is another version may be something in the place of a content of so many bytes: it states a smaller
    /// size, or may be a page. What is exactly as large is the file.
    private static func mayStandInPlace(_ found: Representation, of size: Int64?, _ facts: ResponseFacts) -> Bool {
        guard let stated = found.size, stated != size else { return found.size == nil && facts.isTextual }
        return facts.isTextual || size.map { stated < $0 } ?? false
    }

    static func wrongSize(_ size: Int64, expected: Int64) -> ResponseVerdict {
        refuse(.sizeMismatch, "expected \(expected) bytes, the origin has \(size)")
    }

    /// Row 30: bytes of another mirror are of this content only if the sizes agree, and a strong ETag or a digest does.
    /// Dates and weak tags of two servers say nothing about each other. The kind is `changed`; the store, which hears it, knows
    /// that the source is not the version's own, and gives up that source for this version.
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
