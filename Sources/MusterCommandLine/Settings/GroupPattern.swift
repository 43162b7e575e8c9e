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

    /// `group.succeeded` as `dev.muster.group.succeeded.v1`; what is whole stays.
    static func full(_ types: [String]) -> [String] {
        types.map { $0.hasPrefix(prefix) ? $0 : prefix + $0 + suffix }
    }

    /// `dev.muster.group.succeeded.v1` as `group.succeeded`.
    static func short(_ type: String) -> String {
        var short = type
        if short.hasPrefix(prefix) { short.removeFirst(prefix.count) }
        if short.hasSuffix(suffix) { short.removeLast(suffix.count) }
        return short
    }
}
