/// Reads the texts of Internet addresses, byte by byte, and only texts with a single meaning.
///
/// The resolver's own functions also take `127.1`, `0x7f.1` and `017700000001` for loopback. Only texts that every program reads the same
/// way count as addresses here.
enum NumericAddress {
    /// The 16 bytes of an address, IPv4 as mapped into IPv6; `nil` for a text that is no address. A zone (RFC 4007 §11), as in
    /// `fe80::1%eth0`, is dropped.
    static func parse(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        // The longest text is six groups, an embedded IPv4 address, and a zone with the name of an interface.
        let text = Array(text.prefix(maximumBytes + 1))
        guard text.count <= maximumBytes else { return nil }
        guard text.contains(UInt8(ascii: ":")) else { return quad(text[...]).map(mapped) }
        guard let percent = text.firstIndex(of: UInt8(ascii: "%")) else { return groups(text[...]) }
        guard percent + 1 < text.endIndex else { return nil }
        return groups(text[..<percent])
    }

    private static let maximumBytes = 128

    /// An IPv4 address mapped into IPv6 (RFC 4291 §2.5.5.2).
    static func mapped(_ quad: some Sequence<UInt8>) -> [UInt8] {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] + quad
    }

    /// A decimal number of digits alone, without leading zeros.
    static func number(_ text: some Collection<UInt8>, atMost limit: Int) -> Int? {
        guard let first = text.first, text.count <= 3, first != UInt8(ascii: "0") || text.count == 1 else { return nil }
        var number = 0
        for byte in text {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return number <= limit ? number : nil
    }

    /// The four bytes of a dotted quad. Leading zeros are refused, since some programs read them as octal.
    private static func quad(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        let numbers = parts.compactMap { number($0, atMost: 255) }
        return numbers.count == 4 ? numbers.map { UInt8($0) } : nil
    }

    /// The 16 bytes of an IPv6 address (RFC 4291 §2.2).
    private static func groups(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let colon = UInt8(ascii: ":")
        let gap = text.indices.dropLast().first { text[$0] == colon && text[$0 + 1] == colon }
        guard let gap else {
            guard let bytes = run(text, endsAddress: true), bytes.count == 16 else { return nil }
            return bytes
        }
        // A second gap leaves an empty group, which is refused.
        guard let head = run(text[..<gap], endsAddress: false), let tail = run(text[(gap + 2)...], endsAddress: true),
            head.count + tail.count <= 14
        else { return nil }
        return head + Array(repeating: 0, count: 16 - head.count - tail.count) + tail
    }

    /// The bytes of groups between colons; the last of an address may be a dotted quad. An empty text has no groups.
    private static func run(_ text: ArraySlice<UInt8>, endsAddress: Bool) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        var bytes: [UInt8] = []
        let groups = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        for (index, group) in groups.enumerated() {
            if endsAddress, index == groups.count - 1, group.contains(UInt8(ascii: ".")) {
                guard let quad = quad(group) else { return nil }
                bytes += quad
            } else {
                guard (1...4).contains(group.count) else { return nil }
                var value: UInt16 = 0
                for byte in group {
                    guard let digit = Hexadecimal.digit(byte) else { return nil }
                    value = value << 4 | UInt16(digit)
                }
                bytes += [UInt8(value >> 8), UInt8(value & 0xff)]
            }
        }
        return bytes
    }
}
