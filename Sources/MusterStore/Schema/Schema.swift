import Crypto

/// The schema of this build: tables by number, and every function of the database once (`adr/0016`).
///
/// The scripts are the files of the folders `Tables`, `Verbs` and `Plans`.
enum Schema {
    /// A script of the schema.
    struct Script: Sendable {
        /// The name of its file, without the extension.
        let name: String
        /// Its SQL.
        let text: String

        /// A digest of its text, in hexadecimal.
        var digest: String { Schema.digest([text]) }
    }

    /// Applied once each, in this order, and never edited once a version is tagged.
    static let tables = scripts(in: "Tables")

    /// Installed as a whole, in any order.
    static let verbs = scripts(in: "Verbs")

    /// Sets how some of the verbs are planned; run after them.
    static let plans = scripts(in: "Plans")

    /// The scripts of a folder beside this file, in the order of their names.
    private static func scripts(in folder: String) -> [Script] {
        let beginning = "Schema/\(folder)/"
        return EmbeddedTexts.files.filter { $0.key.hasPrefix(beginning) }.sorted { $0.key < $1.key }
            .map { path, text in
                Script(name: String(path.dropFirst(beginning.utf8.count).dropLast(".sql".utf8.count)), text: text)
            }
    }

    /// Names this build of the schema: a digest over all scripts, in hexadecimal.
    static let build = digest((tables + verbs + plans).map { "\($0.name)\n\($0.text)" })

    private static func digest(_ texts: [String]) -> String {
        var hash = SHA256()
        for text in texts {
            hash.update(data: Array("\(text.utf8.count)\n\(text)".utf8))
        }
        return hash.finalize().prefix(8).map { byte in
            let digits = String(byte, radix: 16)
            return digits.utf8.count == 1 ? "0\(digits)" : digits
        }.joined()
    }
}
