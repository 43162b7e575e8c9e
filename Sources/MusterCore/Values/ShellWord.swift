/// A word as it is typed in a POSIX shell, for commands that messages suggest: names of files and groups come from outside.
public struct ShellWord: CustomStringConvertible, Hashable, Sendable {
    /// The word, quoted if it has to be. A word that begins with a dash follows `--`, so that it is no option.
    public let description: String

    /// Quotes a word, if it has to be.
    public init(_ word: String) {
        // Compares bytes, so that no combining mark hides behind a plain letter.
        if !word.isEmpty, word.first != "-", word.utf8.allSatisfy(Self.plain.contains) {
            description = word
        } else if InvisibleCharacters.replaced(in: word, by: { _ in "" }) != word {
            // Messages show an invisible character as an escape, so the word has to be typed in a form without that character.
            description = (word.first == "-" ? "-- " : "") + "$'\(Self.written(word))'"
        } else {
            let escaped = word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
            description = (word.first == "-" ? "-- " : "") + "'\(escaped)'"
        }
    }

    /// The word between the quotes of `$'…'`: every byte that is not visible ASCII, or that has a meaning there, is written in octal.
    private static func written(_ word: String) -> String {
        word.utf8.map { byte in
            let isPlain = (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "'") && byte != UInt8(ascii: "\\")
            guard !isPlain else { return String(UnicodeScalar(byte)) }
            let digits = String(byte, radix: 8)
            return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
        }.joined()
    }

    private static let plain = Set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+=,-".utf8)
}
