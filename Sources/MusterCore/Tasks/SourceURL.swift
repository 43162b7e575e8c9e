import FoundationEssentials

/// One URL of a task, and the origin that its requests count against.
public struct SourceURL: Hashable, Sendable, CustomStringConvertible {
    /// The URL as the caller gave it, without a fragment, which no request has (RFC 9110 §7.1). Every resume resolves it afresh (range contract, row 20).
    public let string: String
    /// Scheme, host and port in lower case, the port always written: `https://example.org:443`.
    public let origin: String
    /// The URL's path as the caller wrote it, including percent signs.
    public let path: String

    /// The host in lower case, in brackets if it is an IPv6 address.
    public var host: String {
        let authority = origin[(origin.firstRange(of: "://")?.upperBound ?? origin.startIndex)...]
        return String(authority[..<(authority.lastIndex(of: ":") ?? authority.endIndex)])
    }

    /// Why a text is refused as a source.
    public enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// Longer than `Limits.urlBytes`.
        case tooLong
        /// It begins without a scheme, as `www.example.org` does.
        case noScheme
        /// It names no host.
        case noHost
        /// The text in place of the port is no valid port.
        case noPort
        /// It is no URL for another reason, or has control characters or spaces.
        case malformed
        /// A host of more than `Limits.hostBytes`.
        case hostTooLong
        /// A scheme that Muster does not fetch.
        case unsupportedScheme(String)
        /// It has a user or a password. They belong in the options, where they are kept secret.
        case credentials
        /// It names a directory of an FTP or SFTP server.
        case directory

        /// The reason in words, fit for a problem document.
        public var description: String {
            switch self {
            case .tooLong: "the URL is longer than \(Limits.urlBytes) bytes"
            case .noScheme: "a URL begins with its scheme, as https://example.org/a does, and with no quotation mark"
            case .noHost: "it names no host, as https://example.org/a does"
            case .noPort: "its port is none: a number from 1 to 65535"
            case .malformed: "not a URL such as https://example.org/a (a space in one is written %20)"
            case .hostTooLong: "the host's name is longer than \(Limits.hostBytes) bytes"
            case .unsupportedScheme(let scheme):
                "the scheme \"\(scheme)\" is not supported; use http, https, ftp, ftps or sftp"
            case .credentials:
                "user and password in a URL would be shown; give them as \"credentials\" of the fetch options"
            case .directory: "it names a directory of the server; name a file, as in ftp://example.org/a/file"
            }
        }
    }

    /// Checks and takes apart the URL of a file: of an FTP or SFTP server it names no directory.
    public init(validatingFile text: String) throws(Refusal) {
        try self.init(validating: text)
        guard origin.hasPrefix("http") || !namesDirectory else { throw .directory }
    }

    /// Whether an FTP or SFTP server would take the path for that of a directory, or is asked for a list (RFC 1738, section 3.2.2).
    private var namesDirectory: Bool {
        let decoded = ["%2F": "/", "%2f": "/", "%2E": ".", "%2e": "."].reduce(path) { path, escape in
            path.replacing(escape.key, with: escape.value)
        }
        return ["", ".", ".."].contains(decoded.split(separator: "/", omittingEmptySubsequences: false).last ?? "")
            || decoded.lowercased().hasSuffix(";type=d")
    }

    /// Checks and takes apart a URL.
    public init(validating text: String) throws(Refusal) {
        guard text.utf8.count <= Limits.urlBytes else { throw .tooLong }
        if let plain = PlainURL(text) {
            string = text
            origin = plain.origin
            path = plain.path
            return
        }
        guard !text.isEmpty, text.unicodeScalars.allSatisfy({ $0.value > 32 && $0.value != 127 }) else {
            throw .malformed
        }
        // A host with a port looks like a scheme.
        guard text.first?.isLetter == true, let colon = text.firstIndex(of: ":"),
            text[text.index(after: colon)...].first?.isNumber != true
        else { throw .noScheme }
        guard let components = URLComponents(string: text) else { throw .malformed }
        guard let scheme = components.scheme?.lowercased() else { throw .noScheme }
        guard let defaultPort = Self.defaultPort(scheme: scheme) else { throw .unsupportedScheme(scheme) }
        guard let host = components.host?.lowercased(), !host.isEmpty else { throw .noHost }
        guard host.unicodeScalars.allSatisfy({ $0.value > 32 && $0.value != 127 }) else { throw .malformed }
        guard host.utf8.count <= Limits.hostBytes else { throw .hostTooLong }
        guard Self.isUnambiguous(host) else { throw .malformed }
        guard components.user == nil, components.password == nil else { throw .credentials }
        // A port that is too large for a number reads as no port at all.
        if components.port == nil, let place = components.rangeOfPort, !place.isEmpty { throw .noPort }
        let port = components.port ?? defaultPort
        guard (1...65_535).contains(port) else { throw .noPort }
        let bracketed = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        // Scalars, not Swift's characters: one with a combining mark behind it is another character.
        string = String(text.unicodeScalars.prefix { $0 != "#" })
        origin = "\(scheme)://\(bracketed):\(port)"
        path = Self.path(in: text)
    }

    /// The path as it was written. If it has characters that a URL may not have, `URLComponents` escapes them, and escapes each percent sign again.
    private static func path(in text: String) -> String {
        let scalars = text.unicodeScalars
        guard let start = scalars.firstRange(of: "://".unicodeScalars)?.upperBound else { return "" }
        let path = scalars[start...].drop { !"/?#".unicodeScalars.contains($0) }
        return String(path.prefix { !"?#".unicodeScalars.contains($0) })
    }

    /// Whether a decoded host is read as the same host again: a delimiter that was escaped would make another host of the origin's text, and libcurl
    /// takes none of the others for a host's.
    private static func isUnambiguous(_ host: String) -> Bool {
        let bytes = host.utf8
        guard !bytes.contains(where: { "/?#@\\\"<>^`{|}!$&'()*+,;=".utf8.contains($0) }) else { return false }
        guard bytes.contains(UInt8(ascii: ":")) else { return !bytes.contains { "%[]".utf8.contains($0) } }
        let address = host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host[...]
        return NumericAddress.parse(address.utf8) != nil
    }

    /// Whether the path has an extension that pages and other generated texts don't have (range contract, row 27).
    public var namesNoText: Bool { pathExtension.map { !Self.texts.contains($0) } ?? false }

    /// Whether the path has an extension that HTML pages don't have.
    public var namesNoPage: Bool { pathExtension.map { !Self.pages.contains($0) } ?? false }

    private var pathExtension: String? {
        guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: "."), dot > name.startIndex
        else { return nil }
        let kind = name[name.index(after: dot)...].lowercased()
        return kind.isEmpty ? nil : kind
    }

    private static let pages: Set<String> = [
        "asp", "aspx", "cgi", "do", "htm", "html", "jsp", "jspx", "php", "shtml", "xhtml",
    ]

    private static let texts: Set<String> = [
        "adoc", "asc", "asp", "aspx", "ass", "atom", "awk", "bash", "bat", "bed", "bib", "bibtex", "c", "cc", "cer",
        "cfg", "cgi", "cjs", "cmake", "conf", "cpp", "crt", "cs", "css", "csv", "cue", "dart", "def", "desc", "dff",
        "diff", "do", "dot", "dtd", "eml", "env", "f90", "fa", "fai", "fasta", "fastq", "fq", "geojson", "gff",
        "gff3", "go", "gpx", "gradle", "gtf", "h", "har", "hpp", "htaccess", "htm", "html", "ics", "ini", "ipynb",
        "jad", "java", "js", "json", "json5", "jsonl", "jsonld", "jsp", "jspx", "kml", "kt", "latex", "less", "list",
        "lock", "log", "lst", "lua", "m", "m3u", "m3u8", "m4", "magnet", "make", "map", "markdown", "md", "md5",
        "md5sum", "mjs", "mk", "mpd", "msg", "ndjson", "nfo", "nt", "owl", "pas", "patch", "pdb", "pem", "php", "pl",
        "plist", "pls", "pm", "po", "pot", "properties", "proto", "ps1", "pub", "py", "r", "rb", "rdf", "rs", "rss",
        "rst", "rtf", "sam", "sass", "sbv", "scala", "scss", "sed", "sgml", "sh", "sha1", "sha256", "sha256sum",
        "sha512", "sha512sum", "shtml", "sig", "sln", "sql", "srt", "ssa", "strm", "sub", "sum", "svg", "swift",
        "tcl", "tex", "text", "tf", "toml", "topojson", "tps", "ts", "tsv", "tsx", "ttl", "txt", "vb", "vcf", "vcs",
        "vtt", "webmanifest", "wsdl", "xhtml", "xlf", "xliff", "xml", "xsd", "xsl", "xslt", "xspf", "yaml", "yml",
        "zsh",
    ]

    /// The port of a scheme that Muster fetches (range contract, row 37); `nil` for all others, `file` among them.
    private static func defaultPort(scheme: String) -> Int? {
        switch scheme {
        case "http": 80
        case "https": 443
        case "ftp": 21
        case "ftps": 990
        case "sftp": 22
        default: nil
        }
    }

    /// The URL as the caller gave it.
    public var description: String { string }
}
