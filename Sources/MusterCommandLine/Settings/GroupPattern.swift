import MusterCore

/// Names of groups in which `*` stands for any characters and `?` for one.
struct GroupPattern: Hashable, Sendable {
    /// The pattern as it is typed.
    let text: String

    /// Checks a pattern: what stands there besides the two signs must be able to stand in a name.
    init(_ text: String) throws(CommandFailure) {
        let name = String(text.map { $0 == "*" || $0 == "?" ? "x" : $0 })
        guard NameRule.accepts(name) else {
            throw .usage("a pattern of groups is a name in which * and ? may stand, not \"\(text)\"")
        }
        self.text = text
    }
}

/// Types of events as people type them.
enum EventType {
    private static let prefix = "dev.muster."
    private static let suffix = ".v1"

    /// The types that there are, in their short form. Whoever wants one that came later writes it whole.
    static let known = [
        "group.succeeded", "group.failed", "group.cancelled", "group.removed", "group.overdue", "task.succeeded",
        "task.failed", "task.cancelled", "task.changed",
    ]

    /// `group.succeeded` as `dev.muster.group.succeeded.v1`; what is whole stays. `nil` when one of them is neither whole nor
    /// known: a subscription to a mistyped type would wait for ever.
    static func full(_ types: [String]) -> [String]? {
        guard types.allSatisfy({ $0.hasPrefix(prefix) || known.contains($0) }) else { return nil }
        return types.map { $0.hasPrefix(prefix) ? $0 : prefix + $0 + suffix }
    }

    /// `dev.muster.group.succeeded.v1` as `group.succeeded`.
    static func short(_ type: String) -> String {
        var short = type
        if short.hasPrefix(prefix) { short.removeFirst(prefix.count) }
        if short.hasSuffix(suffix) { short.removeLast(suffix.count) }
        return short
    }
}

extension Settings {
    /// The types of events that are wanted; none for all of them.
    func eventTypes() throws(CommandFailure) -> [String] {
        guard let types = EventType.full(words(.types)) else {
            throw refusal(.types, "must be some of \(EventType.known.joined(separator: ", "))")
        }
        return types
    }
}
