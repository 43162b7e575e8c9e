import MusterCore

/// The notation of rates on the command line and in configuration: a size (`ByteCount`), with or without `/s`.
enum RateNotation {
    /// Bytes per second; `nil` for a text that is no rate, and for a rate outside `Limits.bytesPerSecond`.
    static func parse(_ text: String) -> Int64? {
        let size = text.hasSuffix("/s") ? String(text.dropLast(2)) : text
        guard let count = ByteCount(size), Limits.bytesPerSecond.contains(count.bytes) else { return nil }
        return count.bytes
    }

    /// What a rate must look like.
    static let rule = "must be a rate such as 500KiB/s, 2M (1024²) or 20MB/s (1000²), or a number of bytes per second"
}
