/// A number of bytes with the notation of the command line: `64KiB`, `8MiB`, `1GiB`, or plain bytes; `K`, `M`, `G` and `T` alone mean the same, as they do
/// to curl and aria2, and `KB`, `MB`, `GB` and `TB` are powers of 1,000.
public struct ByteCount: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The number of bytes; never negative.
    public let bytes: Int64

    /// A count of bytes; a negative number counts as zero.
    public init(bytes: Int64) {
        self.bytes = max(0, bytes)
    }

    /// `count` × 1,024 bytes.
    public static func kibibytes(_ count: Int64) -> ByteCount { ByteCount(bytes: count << 10) }
    /// `count` × 1,048,576 bytes.
    public static func mebibytes(_ count: Int64) -> ByteCount { ByteCount(bytes: count << 20) }

    private static let units: [(suffix: String, shift: Int64)] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)]

    /// The notation of sizes, for messages to the user.
    public static let rule = "a size such as 64KiB, 8MiB, 1.5G (1024³) or 20MB (1000²), or a number of bytes"

    /// Parses `64KiB`, `8M`, `1.5GiB`, `20MB`, `123B` or `123`; `nil` for anything else, for overflow and for negative numbers. A small `b`
    /// is refused, since it can mean bits.
    public init?(_ text: String) {
        let number = text.prefix { !$0.isLetter }
        guard let factor = Self.factor(text.dropFirst(number.count)),
            let value = DecimalNotation.scaled(number, by: factor)
        else { return nil }
        bytes = value
    }

    /// How many bytes a unit stands for.
    private static func factor(_ unit: Substring) -> Int64? {
        switch unit {
        case "", "B": 1
        case "KiB", "K", "k": 1 << 10
        case "MiB", "M", "m": 1 << 20
        case "GiB", "G", "g": 1 << 30
        case "TiB", "T", "t": 1 << 40
        case "KB", "kB": 1_000
        case "MB": 1_000_000
        case "GB": 1_000_000_000
        case "TB": 1_000_000_000_000
        default: nil
        }
    }

    /// The number in the largest unit of which there is at least one, with one decimal, rounded to the nearest: `1.5 GiB`.
    public var description: String {
        let units = Self.units
        guard let first = units.lastIndex(where: { bytes >= 1 << $0.shift }) else { return "\(bytes) B" }
        var (index, tenths) = (first, Self.tenths(bytes, shift: units[first].shift))
        // A number that rounds up to the next unit is written in that unit.
        if tenths >= 10_240, index + 1 < units.count { (index, tenths) = (index + 1, 10) }
        return "\(tenths / 10).\(tenths % 10) \(units[index].suffix)"
    }

    /// The number of tenths of a unit, rounded to the nearest.
    private static func tenths(_ bytes: Int64, shift: Int64) -> Int64 {
        let unit = Int64(1) << shift
        return bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit
    }

    /// Compares by the number of bytes.
    public static func < (left: Self, right: Self) -> Bool { left.bytes < right.bytes }
}

/// Decimal numbers as people write them, read without floating point so that no size is off by one.
enum DecimalNotation {
    /// `text` (digits, at most one point, at most nine decimals) × `factor`, rounded down; `nil` for other texts and for overflow.
    static func scaled(_ text: Substring, by factor: Int64) -> Int64? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, let whole = digits(parts[0]) else { return nil }
        var result = whole.multipliedReportingOverflow(by: factor)
        guard !result.overflow else { return nil }
        guard parts.count == 2 else { return result.partialValue }
        guard parts[1].count <= 9, let fraction = digits(parts[1]) else { return nil }
        var divisor: Int64 = 1
        for _ in parts[1] { divisor *= 10 }
        let (high, low) = fraction.multipliedFullWidth(by: factor)
        let part = divisor.dividingFullWidth((high, low)).quotient
        result = result.partialValue.addingReportingOverflow(part)
        return result.overflow ? nil : result.partialValue
    }

    private static func digits(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }
}
