import MusterCore

/// A digest on the command line: `sha256:HEX`, or `SHA-256:HEX` as other programs write it.
struct DigestArgument: Hashable, Sendable {
    /// The digest.
    let digest: ContentDigest

    /// Parses `ALGORITHM:HEX`.
    ///
    /// - Throws: `CommandFailure.usage` with what is wrong.
    init(_ text: String) throws(CommandFailure) {
        let names = DigestAlgorithm.allCases.map(\.rawValue)
        guard let colon = text.firstIndex(of: ":"),
            let algorithm = DigestAlgorithm(rawValue: text[..<colon].lowercased().filter { $0 != "-" })
        else {
            let bare = DigestAlgorithm.allCases.first { ContentDigest(algorithm: $0, hexadecimal: text) != nil }
            throw .usage(
                "--digest must be ALGORITHM:HEX with one of \(names.joined(separator: ", ")), not \"\(text)\""
                    + (bare.map { ". Did you mean \($0.rawValue):\(text)?" } ?? ""))
        }
        guard let digest = ContentDigest(algorithm: algorithm, hexadecimal: String(text[text.index(after: colon)...]))
        else {
            throw .usage("--digest \(algorithm.rawValue): must have \(algorithm.hexadecimalDigits) hexadecimal digits")
        }
        self.digest = digest
    }

    /// The digest in the form of a task's document.
    var document: [String: String] { [digest.algorithm.rawValue: digest.hexadecimal] }
}
