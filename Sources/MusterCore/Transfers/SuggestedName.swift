/// The name that an origin suggests for a file (range contract, row 34): only the last segment, without anything that a file system or a
/// terminal would interpret.
public struct SuggestedName: Hashable, Sendable, CustomStringConvertible {
    /// One component of a path: nothing invisible, no separator, not `.`, `..` or `.muster`, 1 to 255 bytes.
    public let description: String

    /// The name of a response: from Content-Disposition, or else from the URL that answered, after redirects. `nil`
    /// when neither holds one.
    public init?(_ facts: ResponseFacts, effectiveURL: String) {
        let fields = facts.values("content-disposition")
        guard let name = fields.lazy.compactMap({ Self(contentDisposition: $0) }).first ?? Self(url: effectiveURL)
        else {
            return nil
        }
        self = name
    }

    /// The name in a Content-Disposition field (RFC 6266 §4.3): `filename*` if it can be read, `filename` otherwise.
    init?(contentDisposition field: String) {
        let parameters = ContentDisposition(field)
        guard let name = parameters.extended.flatMap({ Self(safe: $0) }) ?? parameters.plain.flatMap({ Self(safe: $0) })
        else { return nil }
        self = name
    }

    /// The last segment of a URL's path, decoded.
    init?(url: String) {
        guard let path = (try? SourceURL(validating: url))?.path else { return nil }
        let segment = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last
        guard let segment = segment.map({ Substring($0) }) else { return nil }
        self.init(safe: PercentEncoding.decode(segment) ?? String(segment))
    }

    /// Turns any text into a name; `nil` when nothing is left of it.
    init?(safe text: String) {
        // Splits by scalars, not by Swift's characters: a slash with a combining mark is a single character, which does not equal a slash.
        let segment = text.unicodeScalars.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.last
        let visible = InvisibleCharacters.replaced(in: segment.map { String($0) } ?? "") { _ in "_" }
        // A cut may leave a space at the end.
        let name = Self.shortened(visible.withoutOuterSpaces).withoutOuterSpaces
        guard (try? DestinationPath(validating: name)) != nil else { return nil }
        description = name
    }

    /// At most 255 bytes, cut between characters, with the extension kept if it looks like one.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > Limits.pathComponentBytes else { return name }
        let longestExtension = 16
        var stem = name[...]
        var ending: Substring = ""
        if let dot = name.lastIndex(of: "."), dot > name.startIndex, name[dot...].utf8.count <= longestExtension {
            (stem, ending) = (name[..<dot], name[dot...])
        }
        while !stem.isEmpty, stem.utf8.count + ending.utf8.count > Limits.pathComponentBytes { stem.removeLast() }
        return stem.isEmpty ? "" : String(stem + ending)
    }
}

/// The file names in a Content-Disposition field (RFC 6266 §4.1), read leniently.
private struct ContentDisposition {
    /// `filename*`, decoded (RFC 8187 §3.2).
    private(set) var extended: String?
    /// `filename`, unchanged: percent signs in it are literal (RFC 6266 appendix D).
    private(set) var plain: String?

    init(_ field: String) {
        guard field.utf8.count <= Limits.headerBytes else { return }
        for part in Self.parts(field) {
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard halves.count == 2 else { continue }
            // Senders must not repeat a parameter; if they do, the first counts.
            switch halves[0].trimmed.lowercased() {
            case "filename*": extended = extended ?? Self.decoded(halves[1].trimmed)
            case "filename": plain = plain ?? Self.unquoted(halves[1].trimmed)
            default: continue
            }
        }
    }

    /// The field at its semicolons, except those within quotes.
    private static func parts(_ field: String) -> [Substring] {
        var parts: [Substring] = []
        var (start, isQuoted, isEscaped) = (field.startIndex, false, false)
        for index in field.unicodeScalars.indices {
            switch field.unicodeScalars[index] {
            case "\\" where isQuoted && !isEscaped:
                isEscaped = true
                continue
            case "\"" where !isEscaped: isQuoted.toggle()
            case ";" where !isQuoted:
                parts.append(field[start..<index])
                start = field.unicodeScalars.index(after: index)
            default: break
            }
            isEscaped = false
        }
        return parts + [field[start...]]
    }

    /// A token, or a quoted string without its quotes and backslashes (RFC 9110 §5.6.4); `nil` for one that does not
    /// end.
    private static func unquoted(_ value: Substring) -> String? {
        let scalars = value.unicodeScalars
        guard scalars.first == "\"" else { return String(value) }
        var result = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in scalars.dropFirst() {
            switch scalar {
            case "\\" where !isEscaped: isEscaped = true
            case "\"" where !isEscaped: return String(result)
            default:
                result.append(scalar)
                isEscaped = false
            }
        }
        return nil
    }

    /// `UTF-8'language'percent-encoded`; `nil` for another charset and for what can't be decoded.
    private static func decoded(_ value: Substring) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
        return PercentEncoding.decode(parts[2])
    }
}

extension String {
    /// The string without surrounding whitespace, which is invisible.
    fileprivate var withoutOuterSpaces: String {
        let scalars = unicodeScalars.drop { $0.properties.isWhitespace }
        let last = scalars.lastIndex { !$0.properties.isWhitespace }
        return last.map { String(scalars[...$0]) } ?? ""
    }
}
