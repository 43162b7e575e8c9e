/// Characters that nobody sees where they stand, or that change how the text around them is read: control characters, line separators,
/// marks of direction, and whatever Unicode lets a program show as nothing (general category Cf, Default_Ignorable_Code_Point). With
/// them a name passes for another one.
public enum InvisibleCharacters {
    private static let joiner: Unicode.Scalar = "\u{200D}"
    private static let emojiStyle: Unicode.Scalar = "\u{FE0F}"

    /// Whether a character is one of them.
    ///
    /// - Parameter previous: the character before it. A joiner or a variation selector after an emoji is a part of that picture.
    public static func contains(_ scalar: Unicode.Scalar, after previous: Unicode.Scalar?) -> Bool {
        guard isInvisible(scalar) else { return false }
        guard scalar == joiner || scalar == emojiStyle, let previous else { return true }
        return !(previous.value > 0xFF && previous.properties.isEmoji) && previous != emojiStyle
    }

    /// The text with each of them replaced.
    public static func replaced(in text: String, by replacement: (Unicode.Scalar) -> String) -> String {
        var result = ""
        var previous: Unicode.Scalar?
        for scalar in text.unicodeScalars {
            if contains(scalar, after: previous) {
                result += replacement(scalar)
            } else {
                result.unicodeScalars.append(scalar)
            }
            previous = scalar
        }
        return result
    }

    /// The text as a file system compares it that knows no case and ignores these characters.
    static func folded(_ text: String) -> String {
        var visible = String.UnicodeScalarView()
        visible.append(contentsOf: text.unicodeScalars.filter { !isInvisible($0) })
        // Up and down: some letters have their match only one way, such as the long s.
        return String(visible).uppercased().lowercased()
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.value < 0x80 { return scalar.value < 32 || scalar.value == 127 }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: scalar.properties.isDefaultIgnorableCodePoint
        }
    }
}
