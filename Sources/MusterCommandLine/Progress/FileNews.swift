import MusterAPI
import MusterCore

/// What an event says about one file, for the lines that are printed as files finish.
struct FileNews: Hashable, Sendable {
    /// How the task ended.
    enum Outcome: Hashable, Sendable {
        /// The file stands at its path.
        case finished(size: Int64?)
        /// The task was given up.
        case failed(reason: String?)
    }

    /// The task's key, or its path where the event has none.
    let name: String
    /// How it ended.
    let outcome: Outcome

    /// Reads an event; `nil` when it is not about the end of a task.
    init?(_ event: EventDocument) {
        guard case .object(let data) = event.data, let name = Self.text(data, "path") ?? Self.text(data, "key") else {
            return nil
        }
        self.name = name
        switch event.type {
        case "dev.muster.task.succeeded.v1":
            outcome = .finished(size: Self.number(data, "size") ?? Self.number(data, "bytes"))
        case "dev.muster.task.failed.v1":
            guard case .object(let failure)? = data["failure"] else {
                outcome = .failed(reason: Self.text(data, "detail") ?? Self.text(data, "kind"))
                return
            }
            outcome = .failed(reason: Self.reason(failure, at: event.time))
        default:
            return nil
        }
    }

    /// The line for people.
    var line: String {
        let name = TextWidth.escaped(name)
        switch outcome {
        case .finished(let size): return "finished: \(name)" + (size.map { " (\(ByteCount(bytes: $0)))" } ?? "")
        case .failed(let reason): return "failed: \(name)" + (reason.map { ": \(TextWidth.escaped($0))" } ?? "")
        }
    }

    /// The failure in words: those of the tasks' lists, where its kind is known here.
    private static func reason(_ failure: [String: JSONValue], at time: Timestamp) -> String? {
        let detail = text(failure, "detail")
        guard let name = text(failure, "kind") else { return detail }
        guard let kind = FailureKind(rawValue: name), let detail else {
            return [name, detail].compactMap { $0 }.joined(separator: ": ")
        }
        return FailureText.text(
            FailureDocument(
                kind: kind, detail: detail, at: time, status: number(failure, "status").map { Int(clamping: $0) },
                source: text(failure, "source"), requestID: text(failure, "requestID")))
    }

    private static func text(_ data: [String: JSONValue], _ key: String) -> String? {
        if case .string(let text)? = data[key] { text } else { nil }
    }

    private static func number(_ data: [String: JSONValue], _ key: String) -> Int64? {
        if case .integer(let number)? = data[key] { number } else { nil }
    }
}
