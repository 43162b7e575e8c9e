import MusterAPI
import MusterCore

/// A failure in words, and where to read more.
enum FailureText {
    /// `404 Not Found from https://example.org/a [request 5f3]`.
    ///
    /// - Parameter isDecided: whether the task has failed because of it.
    static func text(_ failure: TaskFailure, isDecided: Bool) -> String {
        var text = failure.kind.text(
            status: failure.status, source: failure.source, detail: failure.detail, isDecided: isDecided)
        if let request = failure.requestID { text += " [request \(request)]" }
        return text
    }

    /// The command that tells all about a task, as it can be typed.
    static func hint(group: String, key: String) -> String {
        "muster explain \(ShellWord(group)) \(ShellWord(key))"
    }
}
