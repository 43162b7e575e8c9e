import MusterCore

/// Names of groups in which `*` stands for any characters and `?` for one.
struct GroupPattern: Hashable, Sendable {
    /// The pattern as it is typed.
    let text: String

    /// Checks a pattern: its other characters must be allowed in a name.
    init(_ text: String) throws(CommandFailure) {
        let name = String(text.map { $0 == "*" || $0 == "?" ? "x" : $0 })
        guard NameRule.accepts(name) else {
            throw .usage("a pattern of groups is a name in which * and ? may stand, not \"\(text)\"")
        }
        self.text = text
    }
}

extension EventType {
    /// The known types in their short form. A type that a newer version adds is written in full.
    static var words: [String] { allCases.map(\.short) }

    /// Expands `group.succeeded` to `dev.muster.group.succeeded.v1`; full types stay. `nil` when a type is neither full nor known: a
    /// subscription to a mistyped type would wait for ever.
    static func full(_ types: [String]) -> [String]? {
        var full: [String] = []
        for type in types {
            if type.hasPrefix(prefix) {
                full.append(type)
            } else if let known = EventType(short: type) {
                full.append(known.rawValue)
            } else {
                return nil
            }
        }
        return full
    }
}

extension Settings {
    /// The wanted types of events; empty for all types.
    func eventTypes() throws(CommandFailure) -> [String] {
        guard let types = EventType.full(words(.types)) else {
            throw refusal(.types, "must be some of \(EventType.words.joined(separator: ", "))")
        }
        return types
    }
}
