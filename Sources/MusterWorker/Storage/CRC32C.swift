import CLibisal

/// CRC-32C (Castagnoli; RFC 3720 appendix B.4), the checksum of chunks and durable prefixes.
///
/// The value is the standard one: reflected, inverted before and after, 0 for no bytes, `0xE3069283` for `"123456789"`.
enum CRC32C {
    /// The checksum of no bytes: what a chunk begins with.
    static let empty: UInt32 = 0

    /// The checksum of what `crc` is the checksum of, followed by `bytes`.
    ///
    /// - Parameters:
    ///   - crc: a value that this function returned, or `empty`.
    ///   - bytes: any number of bytes, also none.
    static func extend(_ crc: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
        // ISA-L leaves both inversions to its caller, and counts bytes in an `int`.
        var state = ~crc
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
            guard let start = piece.baseAddress else { break }
            let octets = UnsafeMutablePointer(mutating: start.assumingMemoryBound(to: UInt8.self))
            state = crc32_iscsi(octets, Int32(piece.count), state)
            rest = rest.dropFirst(piece.count)
        }
        return ~state
    }

    /// The checksum of what `crc` is the checksum of, followed by `bytes`.
    static func extend(_ crc: UInt32, _ bytes: some Sequence<UInt8>) -> UInt32 {
        bytes.withContiguousStorageIfAvailable { extend(crc, UnsafeRawBufferPointer($0)) }
            ?? Array(bytes).withUnsafeBytes { extend(crc, $0) }
    }
}
