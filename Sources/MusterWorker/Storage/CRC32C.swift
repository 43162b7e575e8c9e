import CLibisal
import MusterCore

/// CRC-32C (Castagnoli; RFC 3720 appendix B.4), the checksum of chunks and durable prefixes.
///
/// The value is the standard one: reflected, inverted before and after, 0 for no bytes, `0xE3069283` for `"123456789"`.
enum CRC32C {
    /// The checksum of no bytes: the initial value for a chunk.
    static let empty: UInt32 = 0

    /// Extends the checksum `crc` of some bytes by `bytes` that follow them.
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

    /// The checksum of two adjacent pieces, computed from their checksums without reading them again: the first checksum
    /// is shifted by the length of the second piece, as a polynomial over GF(2) modulo the Castagnoli polynomial.
    ///
    /// - Parameter length: of the second piece, in bytes.
    static func combine(_ first: UInt32, _ second: UInt32, length: Int64) -> UInt32 {
        // Bit 31 is x⁰, so this is x⁸, the shift by one byte.
        var power: UInt32 = 1 << 23
        var shift: UInt32 = 1 << 31
        var rest = UInt64(max(0, length))
        while rest > 0 {
            if rest & 1 == 1 { shift = product(power, shift) }
            power = product(power, power)
            rest >>= 1
        }
        return product(shift, first) ^ second
    }

    /// The product of two polynomials modulo the Castagnoli polynomial, all of them reflected.
    private static func product(_ left: UInt32, _ right: UInt32) -> UInt32 {
        var (left, right, sum) = (left, right, UInt32(0))
        while left != 0 {
            if left >> 31 == 1 { sum ^= right }
            left <<= 1
            right = right & 1 == 1 ? right >> 1 ^ 0x82f6_3b78 : right >> 1
        }
        return sum
    }

    /// The checksum of the whole file that the chunks tile.
    static func whole(_ chunks: [FinishedChunk]) -> UInt32 {
        chunks.sorted { $0.range.start < $1.range.start }.reduce(empty) {
            combine($0, $1.crc, length: $1.range.count)
        }
    }

    /// Extends the checksum `crc` of some bytes by `bytes` that follow them.
    static func extend(_ crc: UInt32, _ bytes: some Sequence<UInt8>) -> UInt32 {
        bytes.withContiguousStorageIfAvailable { extend(crc, UnsafeRawBufferPointer($0)) }
            ?? Array(bytes).withUnsafeBytes { extend(crc, $0) }
    }
}
