/// A word as it is typed in a POSIX shell, for what is said to be typed next: names of files and groups come from elsewhere.
public struct ShellWord: CustomStringConvertible, Hashable, Sendable {
    /// The word, quoted if it has to be. One that begins with a dash follows `--`, so that it is no option.
    public let description: String

    /// Quotes a word, if it has to be.
    public init(_ word: String) {
        // Bytes, so that no combining mark hides behind a plain letter.
        if !word.isEmpty, word.first != "-", word.utf8.allSatisfy(Self.plain.contains) {
            description = word
        } else {
            let escaped = word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
            description = (word.first == "-" ? "-- " : "") + "'\(escaped)'"
        }
    }

    private static let plain = Set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+=,-".utf8)
}
