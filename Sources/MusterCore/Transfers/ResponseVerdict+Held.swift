extension Representation {
    /// The request field that asks for the content only if it is no longer this one (RFC 9110 §13.1.2, §13.1.3); `nil` if no validator can
    /// tell. It carries an entity tag, strong or weak, or else a date that was old enough when it was stated (§8.8.2.2).
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
    /// Judges a body that answers a question with a held file: an origin that ignores conditions sends the same content once more. Under
    /// the same strong tag the body is that content (RFC 9110 §8.8.1), and is not fetched.
    static func judgeHeld(_ body: AcceptedBody, _ question: FetchQuestion) -> ResponseVerdict {
        guard let held = question.held, body.coding == nil, body.offset == 0, let tag = held.strongETag,
            body.representation.strongETag == tag, let size = held.size, body.representation.size == size,
            held.agreement(with: body.representation) == .same
        else { return .accept(body) }
        return .unmodified
    }

    /// Judges a 304 (RFC 9110 §15.4.5): the content is that of the held file which the question named, unless the validators of the
    /// response contradict that. A weak tag that matches has to come with the same date, if there was one: under the weak tag alone the
    /// bytes may differ (§8.8.1).
    static func judgeUnmodified(_ facts: ResponseFacts, _ question: FetchQuestion) -> ResponseVerdict {
        guard let held = question.held else {
            let what = "304 to a request without a condition"
            return question.range == nil ? refuse(.httpStatus(304), what) : .descend(what, to: .whole)
        }
        let stated = facts.representation(size: nil)
        // Length and digests are ignored: they may describe the content that is not sent, or the empty body, and many origins state the wrong ones.
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
