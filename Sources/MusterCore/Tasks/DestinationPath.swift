/// The path of a task's file below its sink: relative, with no way to leave the sink (I8; range contract, row 34).
///
/// The worker confines the path once more when it opens the file, since only the file system knows about links.
public struct DestinationPath: Hashable, Sendable, CustomStringConvertible {
    /// The components, joined by `/`.
    public let string: String

    /// The directory below a sink that belongs to Muster: parts are stored there, and tasks may not use it.
    public static let reservedComponent = ".muster"

    /// Whether some file system takes a component for that directory: many ignore case and invisible characters.
    public static func isReserved(_ component: String) -> Bool {
        // A quick answer for most components: file systems ignore no ASCII character, so the length has to match.
        if component.utf8.count != reservedComponent.utf8.count, component.utf8.allSatisfy({ (32..<127).contains($0) })
        {
            return false
        }
        return InvisibleCharacters.folded(component) == reservedComponent
    }

    /// Why a text is refused as a destination.
    public enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// There is no text.
        case empty
        /// Longer than `Limits.pathBytes`, or a component longer than `Limits.pathComponentBytes`.
        case tooLong
        /// It starts with `/`.
        case absolute
        /// A component is empty, `.` or `..`.
        case traversal
        /// It contains NUL, a control character or a backslash.
        case forbiddenCharacter
        /// It points into `.muster`.
        case reserved

        /// The reason in words, fit for a problem document.
        public var description: String {
            switch self {
            case .empty: "the path is empty"
            case .tooLong:
                "the path is longer than \(Limits.pathBytes) bytes, or a part of it than \(Limits.pathComponentBytes)"
            case .absolute: "the path must be relative to the directory of its sink"
            case .traversal: "the path may not contain empty parts, \".\" or \"..\""
            case .forbiddenCharacter: "the path may not contain control characters or backslashes"
            case .reserved: "\".muster\" belongs to Muster itself"
            }
        }
    }

    /// Checks `text`. A trailing slash is refused, since it would name a directory.
    public init(validating text: String) throws(Refusal) {
        guard !text.isEmpty else { throw .empty }
        guard text.utf8.count <= Limits.pathBytes else { throw .tooLong }
        // Bytes, not Swift's characters: a slash with a combining mark is a single character, which does not equal a slash.
        guard text.utf8.first != UInt8(ascii: "/") else { throw .absolute }
        guard text.utf8.allSatisfy({ $0 >= 32 && $0 != 127 && $0 != UInt8(ascii: "\\") }) else {
            throw .forbiddenCharacter
        }
        let components = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for component in components {
            guard !component.isEmpty, !component.elementsEqual(".".utf8), !component.elementsEqual("..".utf8) else {
                throw .traversal
            }
            guard component.count <= Limits.pathComponentBytes else { throw .tooLong }
        }
        guard !Self.isReserved(String(decoding: components[0], as: UTF8.self)) else { throw .reserved }
        string = text
    }

    /// The name that a URL suggests: its last segment, decoded and made safe; `index.html` if it has none.
    public static func suggested(byURLPath path: String) -> String {
        let segment = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        let decoded = PercentEncoding.decode(segment) ?? String(segment)
        var name = ""
        for scalar in InvisibleCharacters.replaced(in: decoded, by: { _ in "_" }).unicodeScalars {
            name.unicodeScalars.append(scalar == "/" || scalar == "\\" ? "_" : scalar)
        }
        while name.utf8.count > Limits.pathComponentBytes { name.removeLast() }
        if name.isEmpty { return "index.html" }
        return name == "." || name == ".." || isReserved(name) ? name.replacing(".", with: "_") : name
    }

    /// The path as it is stored.
    public var description: String { string }
}

extension String {
    /// `self` with every `character` replaced; nothing more of Foundation's string replacement is needed here.
    fileprivate func replacing(_ character: Character, with other: Character) -> String {
        String(map { $0 == character ? other : $0 })
    }
}
