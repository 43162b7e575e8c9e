/// What to do with a response, decided from its head alone before the first body byte (`docs/range-contract.md`).
///
/// `judge` is the only place where this is decided: a pure function of the head, of what was asked, and of what is known. The rows of the
/// table are decided in these files:
///
/// | rows | in |
/// | --- | --- |
/// | 2–5, 7, 12–14, 22c | `ResponseVerdict+Partial`: a 206, also to a plain GET |
/// | 1, 10, 13, 14, 16, 17 | `ResponseVerdict+Whole`: a 200 or a 416 |
/// | 6, 8, 9, 11, 27, 29, 30, 35 | `ResponseVerdict+Content`: is it the same content? |
/// | – | `ResponseVerdict+Held`: a 304, or a body in its place, is it the content of a file that is there already? |
/// | 20, 21, 22a, 22c, 24–26, 31 | here: statuses, lengths and Retry-After |
///
/// Row 19 is decided by never looking at Accept-Ranges (RFC 9110 §14.3), row 37 by giving the answers of other
/// protocols heads of the same form: 206 with Content-Range and Last-Modified, or 200 for a whole file.
public enum ResponseVerdict: Hashable, Sendable {
    /// Write the body.
    case accept(AcceptedBody)
    /// Ask again without If-Range: the condition failed although nothing changed (row 10), or it alone may be refused (row 22a).
    case askUnconditionally
    /// Ask again without If-None-Match and If-Modified-Since: the answer does not tell whether the content is still that of the held file
    /// which the question named.
    case askPlainly
    /// The content is still that of the held file which the question named; no body is sent.
    case unmodified
    /// No bytes are left: the requested range starts exactly where the file ends (row 16).
    case complete
    /// The answer contradicts the way in which the source was asked: ask it on a lower rung. Rungs above `to` don't work either.
    case descend(String, to: Rung)
    /// Nothing of the body may be kept. `retryAfter` is the delay that the origin asks for, in seconds.
    case refuse(FailureKind, detail: String, retryAfter: Int64?)

    /// Judges a response.
    public static func judge(_ facts: ResponseFacts, to question: FetchQuestion) -> ResponseVerdict {
        let verdict = byStatus(facts, question)
        if case .accept(let body) = verdict { return judgeHeld(body, question) }
        // Another mirror that can't serve what the others serve is given up; it doesn't make the others start over (row 30).
        guard question.isOtherMirror, case .descend(let what, _) = verdict else { return verdict }
        return refuse(.changed, "the mirror won't do: \(what)")
    }

    private static func byStatus(_ facts: ResponseFacts, _ question: FetchQuestion) -> ResponseVerdict {
        switch facts.status {
        // A 203 or 226 carries a file as a 200 does (row 22c; RFC 9110 §15.3.4, RFC 3229 §10.4.1).
        case 200, 203, 206, 226: return byLength(facts, question)
        case 304: return judgeUnmodified(facts, question)
        case 416: return judgeUnsatisfiable(facts, question)
        case 200..<300:
            let what = "status \(facts.status) carries no file"
            return question.range == nil ? refuse(.httpStatus(facts.status), what) : .descend(what, to: .whole)
        // Row 22a: the origin may have refused the condition alone.
        case let status where question.conditional && FailureKind.status(status).mayBeForCondition:
            return .askUnconditionally
        default:
            // Rows 20, 21, 24–26; RFC 9110 §15. A redirect that is left at this point led nowhere.
            let isRedirect = (300..<400).contains(facts.status)
            return .refuse(
                .status(facts.status),
                detail: "the origin answered \(facts.status)" + (isRedirect ? " without a Location to follow" : ""),
                retryAfter: facts.retryAfterSeconds)
        }
    }

    /// Row 31; RFC 9110 §8.6, RFC 9112 §6.3: the end of a body with conflicting lengths is unknown.
    private static func byLength(_ facts: ResponseFacts, _ question: FetchQuestion) -> ResponseVerdict {
        // A plain GET is the last rung. There a transfer coding overrides any length beside it, as RFC 9112 §6.3 says.
        if facts.isChunked, facts.status != 206, question.range == nil {
            return judgeWhole(facts, length: nil, question)
        }
        let length: Int64?
        do {
            // On the last rung a number with other characters around it counts as well, as it does in libcurl.
            length = try facts.contentLength(overlooking: question.range == nil)
        } catch {
            return .descend("Content-Length \(error.stated.quoted) can't be believed", to: .stream)
        }
        return facts.status == 206
            ? judgePartial(facts, length: length, question) : judgeWhole(facts, length: length, question)
    }

    static func refuse(_ kind: FailureKind, _ detail: String) -> ResponseVerdict {
        .refuse(kind, detail: detail, retryAfter: nil)
    }
}
