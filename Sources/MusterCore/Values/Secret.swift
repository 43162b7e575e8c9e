/// A text that only the worker that needs it may see: given as it is, or as a reference that the worker resolves.
///
/// It prints and reflects as a row of dots, so that no log and no error shows it. It is encoded as it was given: only what goes to the
/// database and to workers is encoded.
public struct Secret: Hashable, Sendable, Codable {
    /// How the text is given.
    public enum Form: Hashable, Sendable {
        /// As it is: `value:TEXT`, or any text without one of these prefixes.
        case value(String)
        /// `env:NAME`: an environment variable of the worker.
        case environment(String)
        /// `file:PATH`: a file that the worker reads, without the line break at its end.
        case file(String)
    }

    /// The text as it was given, prefix included.
    public let given: String

    /// A secret as a caller gives it.
    public init(_ given: String) {
        self.given = given
    }

    /// The form that the prefix names.
    public var form: Form {
        if given.hasPrefix("env:") { return .environment(String(given.dropFirst(4))) }
        if given.hasPrefix("file:") { return .file(String(given.dropFirst(5))) }
        if given.hasPrefix("value:") { return .value(String(given.dropFirst(6))) }
        return .value(given)
    }

    /// Whether the text is valid in its form: a variable's name is one that a shell can set (POSIX.1-2017 §3.235), and a file's path is
    /// absolute, since the directory in which a worker was started is unknown. A value may be anything.
    public var isWellFormed: Bool {
        switch form {
        case .value: true
        case .environment(let name):
            name.utf8.first.map { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } == true
                && name.utf8.allSatisfy(Self.isNameByte)
        case .file(let path): path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(0)
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Reads the text as it was given.
    public init(from decoder: any Decoder) throws {
        given = try decoder.singleValueContainer().decode(String.self)
    }

    /// Writes the text as it was given.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(given)
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A row of dots, so that the secret is not shown.
    public var description: String { "•••" }
    /// A row of dots, so that the secret is not shown.
    public var debugDescription: String { description }
    /// Has no children, so that the secret is not shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
