/// The schemes besides http and https: servers of plain files, which know no header fields (range contract, row 37).
enum FileScheme: String, Sendable {
    /// FTP in the clear (RFC 959).
    case ftp
    /// FTP over TLS from the first byte on, data connections too.
    case ftps
    /// The file transfer protocol of SSH.
    case sftp

    /// The scheme of a URL; nil for any other scheme, above all http and https.
    init?(url: String) {
        guard let end = url.utf8.firstIndex(of: 0x3A) else { return nil }
        self.init(rawValue: String(decoding: url.utf8[..<end].map(asciiLowercase), as: UTF8.self))
    }

    /// The reason why a URL of this scheme is rejected; nil if it names one file, to be sent unconverted.
    ///
    /// For a path that ends in a slash libcurl would list the directory, and `;type=` (RFC 1738 §3.2.2) asks for a
    /// listing or for converted line ends: neither is the file.
    func complaint(about url: String) -> String? {
        let rest = url.utf8.drop { $0 != 0x3A }.dropFirst(3)
        let path = rest.drop { $0 != 0x2F }.prefix { $0 != 0x3F && $0 != 0x23 }
        guard let last = path.last, last != 0x2F else { return "the URL names a directory" }
        let lowered = String(decoding: path.map(asciiLowercase), as: UTF8.self)
        if self != .sftp, lowered.contains(";type="), !lowered.hasSuffix(";type=i") {
            return "the URL asks for something else than the file as it is"
        }
        return nil
    }
}
