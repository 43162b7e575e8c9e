import MusterAPI
import MusterCore

/// A failure in words: what kind it was, with which status, from which source, and where to read more.
enum FailureText {
    /// `notFound (status 404) from https://example.org/a: the origin does not have it [request 5f3]`.
    static func text(_ failure: FailureDocument) -> String {
        var text = kind(failure.kind, status: failure.status)
        if let source = failure.source { text += " from \(source)" }
        text += ": \(failure.detail)"
        if let request = failure.requestID { text += " [request \(request)]" }
        return text
    }

    /// The kind, with the status where the kind does not say it.
    static func kind(_ kind: FailureKind, status: Int?) -> String {
        if case .httpStatus = kind { return kind.rawValue }
        return kind.rawValue + (status.map { " (status \($0))" } ?? "")
    }

    /// The command that tells all about a task, as it can be typed.
    static func hint(group: String, key: String) -> String {
        "muster explain \(quoted(group)) \(quoted(key))"
    }

    /// A word for a POSIX shell.
    static func quoted(_ word: String) -> String {
        let plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+=,-"
        // Bytes, so that no combining mark hides behind a plain letter.
        if !word.isEmpty, word.first != "-", word.utf8.allSatisfy({ plain.utf8.contains($0) }) { return word }
        let escaped = word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
        return (word.first == "-" ? "-- " : "") + "'\(escaped)'"
    }
}
