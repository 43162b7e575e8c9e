extension Representation {
    /// The request field that asks for the content only if it is not this one any more (RFC 9110 §13.1.2, §13.1.3); `nil` where nothing
    /// would tell. An entity tag, strong or weak, or else a date that was old enough when it was stated (§8.8.2.2).
    public var absenceCondition: (name: String, value: String)? {
        if let etag {
            let opaque = etag.hasPrefix("W/") ? etag.dropFirst(2) : etag[...]
            guard opaque.utf8.count >= 2, opaque.hasPrefix("\""), opaque.hasSuffix("\"") else { return nil }
            return ("If-None-Match", etag)
        }
        return isDateStrong == true ? lastModified.map { ("If-Modified-Since", $0) } : nil
    }
}

extension ResponseVerdict {
    /// A body in answer to a question that named a file: an origin that heeds no condition sends the same once more. Under the same strong tag it is
    /// that very content (RFC 9110 §8.8.1), and need not come.
    static func judgeHeld(_ body: AcceptedBody, _ question: FetchQuestion) -> ResponseVerdict {
        guard let held = question.held, body.coding == nil, body.offset == 0, let tag = held.strongETag,
            body.representation.strongETag == tag, let size = held.size, body.representation.size == size,
            held.agreement(with: body.representation) == .same
        else { return .accept(body) }
        return .unmodified
    }

    /// A 304 (RFC 9110 §15.4.5): the content is that of the file which the question named, unless what the response states besides
    /// contradicts that. A weak tag that matches has to be stated again with the date, if there was one: under it alone the bytes may
    /// differ (§8.8.1).
    static func judgeUnmodified(_ facts: ResponseFacts, _ question: FetchQuestion) -> ResponseVerdict {
        guard let held = question.held else {
            let what = "304 to a request without a condition"
            return question.range == nil ? refuse(.httpStatus(304), what) : .descend(what, to: .whole)
        }
        let stated = facts.representation(size: nil)
        // A length or a digest would be of the content that is not sent, or of the nothing that is: many state the wrong one.
        let found = Representation(etag: stated.etag, lastModified: stated.lastModified)
        let isWeak = held.etag != nil && held.strongETag == nil
        if isWeak, held.lastModified != nil, found.lastModified != held.lastModified { return .askPlainly }
        switch held.agreement(with: found) {
        case .same: return .unmodified
        case .different: return .askPlainly
        case .unknown: return isWeak ? .askPlainly : .unmodified
        }
    }
}
