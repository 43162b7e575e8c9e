/// Which events a reader or a subscription wants.
public struct EventFilter: Hashable, Sendable {
    /// Why a filter is refused.
    public enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// The pattern of group names can match no name.
        case groups
        /// There are more types than allowed, or this text can't be a type.
        case types(String?)

        /// The reason in words, fit for a problem document.
        public var description: String {
            switch self {
            case .groups:
                "must be 1 to \(Limits.nameCharacters) characters of A-Z a-z 0-9 . _ - and the wildcards * and ?"
            case .types(nil): "must be at most \(Limits.eventTypes) types"
            case .types(let type?): "\"\(type)\" is no type such as dev.muster.group.succeeded.v1"
            }
        }
    }

    /// A pattern of group names: `*` stands for any characters, `?` for one; `nil` is all groups.
    public let groups: String?
    /// The types that are wanted; an empty list is all types.
    public let types: [String]

    /// Every event.
    public static let all = EventFilter()

    private init() {
        groups = nil
        types = []
    }

    /// Checks a filter. The pattern `*` is the same as no pattern; a type that is named twice counts once.
    public init(groups: String?, types: [String]) throws(Refusal) {
        if let groups {
            guard !groups.isEmpty, groups.utf8.count <= Limits.nameCharacters,
                groups.utf8.allSatisfy(Self.isPatternByte)
            else { throw .groups }
        }
        guard types.count <= Limits.eventTypes else { throw .types(nil) }
        for type in types {
            guard !type.isEmpty, type.utf8.count <= Limits.nameCharacters, type.utf8.allSatisfy(Self.isTypeByte)
            else { throw .types(type) }
        }
        self.groups = groups == "*" ? nil : groups
        self.types = Set(types).sorted()
    }

    /// The pattern as a PostgreSQL regular expression over the whole name; `nil` for all names. Patterns allow so few characters that only
    /// the dot has to be escaped, and no expression can be slow.
    public var groupsExpression: String? {
        guard let groups else { return nil }
        var expression = ""
        var previous: Character?
        for character in groups {
            switch character {
            // Several in a row mean the same as a single one, and only cost time.
            case "*": if previous != "*" { expression += ".*" }
            case "?": expression += "."
            case ".": expression += "\\."
            default: expression.append(character)
            }
            previous = character
        }
        return "^\(expression)$"
    }

    private static func isPatternByte(_ byte: UInt8) -> Bool {
        isTypeByte(byte) || byte == UInt8(ascii: "*") || byte == UInt8(ascii: "?")
    }

    private static func isTypeByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
