/// The rule that the names of groups, sinks and workers share: 1 to 200 characters of `A-Z a-z 0-9 . _ -`.
public enum NameRule {
    /// Whether `text` keeps the rule. `.` and `..` are no names: they would be lost in a URL's path.
    public static func accepts(_ text: String) -> Bool {
        guard !text.isEmpty, text.utf8.count <= Limits.nameCharacters, text != ".", text != ".." else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }

    /// The rule in words, for a refusal.
    public static let explanation = "must be 1 to 200 characters of A-Z a-z 0-9 . _ - and not . or .."
}

/// The sink that is used when none is named.
public let defaultSinkName = "default"
