import FoundationEssentials

/// Writes a file of Swift that holds the texts of other files as string literals: `embed-texts OUTPUT DIRECTORY FILE…`. The plugin of this name
/// starts it.
///
/// Resources that SwiftPM embeds are arrays of bytes, one literal for each byte, which take the compiler a minute for half a megabyte (adr/0053).
@main
struct EmbedTexts {
    static func main() throws {
        let (output, directory) = (CommandLine.arguments[1], CommandLine.arguments[2])
        let entries = try CommandLine.arguments.dropFirst(3).map { path in
            let text = try String(contentsOfFile: path, encoding: .utf8)
            return "        \(literal(String(path.dropFirst(directory.count + 1)))): \(literal(text)),\n"
        }
        let source = """
            /// The texts of this target's files, by their paths from its directory.
            enum EmbeddedTexts {
                static let files: [String: String] = [
            \(entries.joined())    ]
            }

            """
        try source.write(toFile: output, atomically: true, encoding: .utf8)
    }

    /// A raw literal: enough signs that nothing in the text ends it or is an escape.
    private static func literal(_ text: String) -> String {
        var longest = 0
        var run = 0
        for character in text.utf8 {
            run = character == UInt8(ascii: "#") ? run + 1 : 0
            longest = max(longest, run)
        }
        let signs = String(repeating: "#", count: longest + 1)
        return text.contains("\n") ? "\(signs)\"\"\"\n\(text)\n\"\"\"\(signs)" : "\(signs)\"\(text)\"\(signs)"
    }
}
