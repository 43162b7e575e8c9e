/// Characters that are invisible, or that change how the text around them is read: control characters, line separators, directional marks,
/// and the characters that Unicode lets a program show as nothing (general category Cf, Default_Ignorable_Code_Point). With them a name can
/// be mistaken for another name.
public enum InvisibleCharacters {
    private static let joiner: Unicode.Scalar = "\u{200D}"
    private static let emojiStyle: Unicode.Scalar = "\u{FE0F}"

    /// Whether a character is invisible.
    ///
    /// - Parameter previous: the character before it. A joiner or a variation selector after an emoji belongs to that emoji.
    public static func contains(_ scalar: Unicode.Scalar, after previous: Unicode.Scalar?) -> Bool {
        guard isInvisible(scalar) else { return false }
        guard scalar == joiner || scalar == emojiStyle, let previous else { return true }
        return !(previous.value > 0xFF && previous.properties.isEmoji) && previous != emojiStyle
    }

    /// The text with each invisible character replaced.
    public static func replaced(in text: String, by replacement: (Unicode.Scalar) -> String) -> String {
        var result = ""
        var previous: Unicode.Scalar?
        for scalar in text.unicodeScalars {
            if contains(scalar, after: previous) {
                result += replacement(scalar)
                // What was replaced joins nothing: a joiner behind it would be invisible.
                previous = nil
            } else {
                result.unicodeScalars.append(scalar)
                previous = scalar
            }
        }
        return result
    }

    /// The text as it is compared by a file system that ignores case and invisible characters.
    static func folded(_ text: String) -> String {
        var visible = String.UnicodeScalarView()
        visible.append(contentsOf: text.unicodeScalars.filter { !isInvisible($0) })
        // Converts both ways: some letters, such as the long s, are matched in one direction only.
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
