/// The Content-Range field of a 206 or 416 response (RFC 9110 §14.4).
public struct ContentRange: Hashable, Sendable {
    /// The bytes that the response carries; `nil` in a 416.
    public let range: ByteRange?
    /// The whole size; `nil` when the origin wrote `*`.
    public let size: Int64?

    /// Parses `bytes 0-99/1234`, `bytes 0-99/*` or `bytes */1234`, and the same with `bytes=`, which some origins copy from the Range
    /// field; `nil` for anything else, and for a range that doesn't fit the size it states.
    public init?(_ field: String) {
        let parts = field.split(separator: field.contains("=") ? "=" : " ", omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
        let halves = parts[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        if halves[1] == "*" {
            size = nil
        } else {
            guard let stated = Self.number(halves[1]) else { return nil }
            size = stated
        }
        if halves[0] == "*" {
            guard size != nil else { return nil }
            range = nil
            return
        }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]),
            let stated = ByteRange(start: first, end: last + 1), !stated.isEmpty
        else { return nil }
        if let size, stated.end > size { return nil }
        range = stated
    }

    /// Accepts digits alone: `Int64.init` would also take a sign. The number is at most `Limits.fileSize`: an origin that states more can't
    /// be believed, and computations with it would overflow.
    static func number(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int64(text), number <= Limits.fileSize.bytes
        else { return nil }
        return number
    }
}
