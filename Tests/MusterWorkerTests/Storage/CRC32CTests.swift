import Testing

@testable import MusterWorker

@Suite struct CRC32CTests {
    @Test(arguments: [
        ("", UInt32(0)), ("a", 0xC1D0_4330), ("abc", 0x364B_3FB7), ("123456789", 0xE306_9283),
        ("The quick brown fox jumps over the lazy dog", 0x2262_0404),
    ])
    func textsHaveTheStandardValue(text: String, expected: UInt32) {
        #expect(CRC32C.extend(CRC32C.empty, Array(text.utf8)) == expected)
    }

    /// RFC 3720 appendix B.4.
    @Test func vectorsOfTheISCSISpecificationHold() {
        #expect(CRC32C.extend(0, [UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(CRC32C.extend(0, [UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(CRC32C.extend(0, Array(UInt8(0)...31)) == 0x46DD_794E)
        #expect(CRC32C.extend(0, Array((UInt8(0)...31).reversed())) == 0x113F_DB5C)
    }

    @Test func extendingByPiecesEqualsTheWhole() {
        let bytes = ScratchSink.content(10_007)
        let whole = CRC32C.extend(CRC32C.empty, bytes)
        for size in [1, 7, 64, 999, 4_096, 10_006] {
            var crc = CRC32C.empty
            for start in stride(from: 0, to: bytes.count, by: size) {
                crc = CRC32C.extend(crc, bytes[start..<min(bytes.count, start + size)])
            }
            #expect(crc == whole)
        }
    }

    @Test func pieceChecksumsMakeUpThatOfTheWhole() {
        let bytes = ScratchSink.content(10_007)
        let whole = CRC32C.extend(CRC32C.empty, bytes)
        for middle in [0, 1, 5, 4_096, 10_006, 10_007] {
            let (first, second) = (CRC32C.extend(0, bytes[..<middle]), CRC32C.extend(0, bytes[middle...]))
            #expect(CRC32C.combine(first, second, length: Int64(bytes.count - middle)) == whole)
        }
        #expect(CRC32C.whole(ScratchSink.chunks(of: bytes, size: 999).shuffled()) == whole)
        #expect(CRC32C.whole([]) == CRC32C.empty)
        // A second piece of many zeros: x^n by squaring, compared with one zero after the other.
        let zeros = [UInt8](repeating: 0, count: 3 << 20)
        let extended = CRC32C.extend(whole, zeros)
        #expect(CRC32C.combine(whole, CRC32C.extend(0, zeros), length: Int64(zeros.count)) == extended)
    }

    /// Computed bit by bit, as the polynomial is defined.
    @Test func agreesWithTheDefinition() {
        for count in [1, 2, 3, 15, 16, 17, 255, 1_024, 5_000] {
            let bytes = ScratchSink.content(count, seed: UInt64(count))
            var crc: UInt32 = .max
            for byte in bytes {
                crc ^= UInt32(byte)
                for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
            }
            #expect(CRC32C.extend(CRC32C.empty, bytes) == ~crc)
        }
    }
}
