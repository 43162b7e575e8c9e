/// Why a piece of input is refused, and where it stands.
public struct InputRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// A JSON pointer (RFC 6901) into the document, `/tasks/3/urls/0`; empty for the document itself.
    public let pointer: String
    /// The line of the manifest, counted from 1, when the input has lines.
    public let line: Int?
    /// The reason, in words.
    public let reason: String

    /// A refusal of the value at `pointer`.
    public init(pointer: String, line: Int? = nil, reason: String) {
        self.pointer = pointer
        self.line = line
        self.reason = reason
    }

    /// A name as one part of a JSON pointer, `~` and `/` escaped (RFC 6901 §3).
    public static func pointerPart(_ name: String) -> String {
        String(
            decoding: name.utf8.flatMap { byte in
                switch byte {
                case UInt8(ascii: "~"): Array("~0".utf8)
                case UInt8(ascii: "/"): Array("~1".utf8)
                default: [byte]
                }
            }, as: UTF8.self)
    }

    /// The value that a JSON pointer names, in words: `"urls", entry 1` for `/urls/0`.
    public static func field(_ pointer: String) -> String {
        pointer.split(separator: "/").map { part in
            // A name may be a number too, even the largest one.
            if let index = Int(part), (0..<Int.max).contains(index) { return "entry \(index + 1)" }
            return "\"\(part.replacing("~1", with: "/").replacing("~0", with: "~"))\""
        }.joined(separator: ", ")
    }

    /// The same refusal within a larger document.
    public func within(_ prefix: String) -> InputRefusal {
        InputRefusal(pointer: prefix + pointer, line: line, reason: reason)
    }

    /// The same refusal on a line of a manifest.
    public func onLine(_ line: Int) -> InputRefusal {
        InputRefusal(pointer: pointer, line: line, reason: reason)
    }

    /// `line 7: /urls/0: not a URL with a host`.
    public var description: String {
        let place = [line.map { "line \($0)" }, pointer.isEmpty ? nil : pointer].compactMap { $0 }
        return (place + [reason]).joined(separator: ": ")
    }
}

/// A task as a caller wants it, checked and ready to be stored.
public struct TaskSpecification: Hashable, Sendable {
    /// The caller's idempotency key, unique in the group; the identity of the task.
    public let key: String
    /// Whether the caller gave the key. A key that was not given is the path, and stands for the task's URLs alone.
    public let hasOwnKey: Bool
    /// Where the content can be fetched, in the caller's order of preference.
    public let sources: [SourceURL]
    /// The path that the file is to have below the sink.
    public private(set) var path: DestinationPath
    /// The expected size in bytes, when the caller knows it.
    public let size: Int64?
    /// The digests that the caller expects of the file.
    public let digests: [ContentDigest]
    /// Headers for every request to a source; may hold secrets.
    public let headers: [String: String]
    /// Higher is served first within the group.
    public let priority: Int32
    /// The caller's own data, returned unchanged.
    public let metadata: JSONValue?
    /// The media type that the content must have, without parameters (range contract, row 27).
    public let contentType: String?
    /// How long the task may take after it is added; it fails after that (row 33).
    public let deadline: Duration?

    /// Checks everything that a caller may state about a task. `path` defaults to the first URL's last segment made safe, `key` to the
    /// path.
    public init(
        urls: [String], key: String? = nil, path: String? = nil, size: Int64? = nil, digests: [String: String] = [:],
        headers: [String: String] = [:], priority: Int32 = 0, metadata: JSONValue? = nil, contentType: String? = nil,
        deadline: String? = nil
    ) throws(InputRefusal) {
        sources = try Self.sources(urls)
        let wanted = path ?? DestinationPath.suggested(byURLPath: sources[0].path)
        do {
            self.path = try DestinationPath(validating: wanted)
        } catch {
            throw InputRefusal(pointer: "/path", reason: error.description)
        }
        self.key = try Self.key(key ?? wanted)
        hasOwnKey = key != nil
        if let size, !(0...Limits.fileSize.bytes).contains(size) {
            throw InputRefusal(pointer: "/size", reason: "must be within 0...\(Limits.fileSize.bytes)")
        }
        self.size = size
        self.digests = try Self.digests(digests)
        self.headers = try Self.headers(headers)
        guard Limits.priority.contains(priority) else {
            throw InputRefusal(pointer: "/priority", reason: "must be within \(Limits.priority)")
        }
        self.priority = priority
        self.metadata = metadata
        if let contentType {
            let parts = contentType.lowercased().split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(Self.isTokenByte) }) else {
                throw InputRefusal(pointer: "/contentType", reason: "not a media type such as application/zip")
            }
        }
        self.contentType = contentType?.lowercased()
        self.deadline = try Self.deadline(deadline)
    }

    /// The same task with another path for its file.
    public func moved(to path: DestinationPath) -> TaskSpecification {
        var task = self
        task.path = path
        return task
    }

    private static func deadline(_ text: String?) throws(InputRefusal) -> Duration? {
        guard let text else { return nil }
        guard let duration = DurationNotation.parse(text), duration > .zero, duration <= Limits.deadline else {
            throw InputRefusal(pointer: "/deadline", reason: "must be a duration such as 30m or 2h, at most 365d")
        }
        return duration
    }

    private static func sources(_ urls: [String]) throws(InputRefusal) -> [SourceURL] {
        guard (1...Limits.sourcesPerTask).contains(urls.count) else {
            throw InputRefusal(pointer: "/urls", reason: "must have 1 to \(Limits.sourcesPerTask) URLs")
        }
        var sources: [SourceURL] = []
        for (index, url) in urls.enumerated() {
            do {
                sources.append(try SourceURL(validatingFile: url))
            } catch {
                throw InputRefusal(pointer: "/urls/\(index)", reason: error.description)
            }
        }
        return sources
    }

    private static func key(_ key: String) throws(InputRefusal) -> String {
        guard (1...Limits.keyBytes).contains(key.utf8.count), !key.utf8.contains(where: { $0 < 32 })
        else {
            throw InputRefusal(
                pointer: "/key", reason: "must be 1 to \(Limits.keyBytes) bytes without control characters")
        }
        // HTTP clients resolve these two in a URL's path: a request for such a task would become one for its group.
        guard key != ".", key != ".." else { throw InputRefusal(pointer: "/key", reason: "must not be . or ..") }
        return key
    }

    private static func digests(_ digests: [String: String]) throws(InputRefusal) -> [ContentDigest] {
        var result: [ContentDigest] = []
        for (name, value) in digests.sorted(by: { $0.key < $1.key }) {
            let pointer = "/digests/\(InputRefusal.pointerPart(name))"
            guard let algorithm = DigestAlgorithm(rawValue: name) else {
                throw InputRefusal(pointer: pointer, reason: "unknown digest; use sha256, sha512, sha1, md5 or crc32c")
            }
            guard let digest = ContentDigest(algorithm: algorithm, hexadecimal: value) else {
                throw InputRefusal(
                    pointer: pointer, reason: "must be \(algorithm.hexadecimalDigits) hexadecimal digits")
            }
            result.append(digest)
        }
        return result
    }

    /// Header fields that Muster sets itself; a caller's value would break range requests or connection handling.
    private static let reservedHeaders: Set<String> = [
        "range", "if-range", "accept-encoding", "content-length", "transfer-encoding", "connection", "host", "te",
        "upgrade", "expect",
    ]

    /// Checks the header fields of a caller; throws for a field that may not be sent, with the pointer `/headers/NAME`.
    public static func headers(_ headers: [String: String]) throws(InputRefusal) -> [String: String] {
        guard headers.count <= Limits.headersPerTask else {
            throw InputRefusal(pointer: "/headers", reason: "at most \(Limits.headersPerTask) headers")
        }
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            let pointer = "/headers/\(InputRefusal.pointerPart(name))"
            guard !name.isEmpty, name.utf8.allSatisfy(isTokenByte) else {
                throw InputRefusal(pointer: pointer, reason: "not a header name (RFC 9110 §5.1)")
            }
            guard name.utf8.count + value.utf8.count <= Limits.headerBytes,
                value.utf8.allSatisfy({ ($0 >= 32 || $0 == 9) && $0 != 127 })
            else {
                throw InputRefusal(
                    pointer: pointer, reason: "the value has control characters or is over \(Limits.headerBytes) bytes")
            }
            guard !reservedHeaders.contains(name.lowercased()) else {
                throw InputRefusal(pointer: pointer, reason: "this header is set by Muster itself")
            }
        }
        return headers
    }

    /// Whether a byte may stand in a header's name: `tchar` of RFC 9110 §5.6.2.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
