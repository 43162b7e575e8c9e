import MusterCore
import Testing

@testable import MusterWorker

/// Decoding of content codings, and where a coded content ends (range contract, row 13).
@Suite struct ContentDecoderTests {
    private static func decoded(
        _ bytes: [UInt8], _ coding: ContentCoding, by count: Int = .max
    ) throws -> (
        bytes: [UInt8], isComplete: Bool
    ) {
        let decoder = ContentDecoder(coding)
        var result: [UInt8] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(count)
            rest = rest.dropFirst(count)
            try piece.withUnsafeBytes { bytes in
                try decoder.decode(bytes) {
                    result.append(contentsOf: $0)
                    return true
                }
            }
        }
        return (result, decoder.isComplete)
    }

    @Test(arguments: CodedText.all.indices, [1, 2, 7, 100, .max])
    func decodedTextIsTheSameWhateverThePieces(index: Int, count: Int) throws {
        let (coding, bytes) = CodedText.all[index]
        let result = try Self.decoded(bytes, coding, by: count)
        #expect(result.bytes == CodedText.text)
        #expect(result.isComplete)
    }

    @Test func contentMayEndWhereAPieceDoes() throws {
        for (coding, bytes) in CodedText.zeros {
            let result = try Self.decoded(bytes, coding)
            #expect(result.bytes == Array(repeating: 0, count: 1 << 18) && result.isComplete, "\(coding)")
        }
    }

    @Test(arguments: CodedText.all.indices) func contentThatLacksItsEndIsNotComplete(index: Int) throws {
        let (coding, bytes) = CodedText.all[index]
        for count in 1..<bytes.count {
            #expect(try !Self.decoded(Array(bytes.prefix(count)), coding).isComplete, "\(coding), \(count) bytes")
        }
    }

    @Test(arguments: ContentCoding.allCases) func emptyBodyIsAnEmptyContent(coding: ContentCoding) throws {
        let result = try Self.decoded([], coding)
        #expect(result.bytes.isEmpty && result.isComplete)
    }

    @Test(arguments: [1, .max]) func severalMembersAreOneContent(count: Int) throws {
        for (coding, bytes) in CodedText.all where coding == .gzip || coding == .zstandard {
            let result = try Self.decoded(bytes + bytes, coding, by: count)
            #expect(result.bytes == CodedText.text + CodedText.text && result.isComplete, "\(coding)")
            #expect(try !Self.decoded(bytes + bytes.prefix(20), coding, by: count).isComplete, "\(coding)")
        }
        let padded = try Self.decoded(
            CodedText.bytes(CodedText.gzip) + Array(repeating: 0, count: 300), .gzip, by: count)
        #expect(padded.bytes == CodedText.text && padded.isComplete)
    }

    @Test(arguments: [1, .max]) func somethingElseBehindTheEndIsRefused(count: Int) {
        for (coding, bytes) in CodedText.all {
            for more in [1, 2, 7, 8, 9] {
                #expect(throws: ContentDecoder.Failure.self, "\(coding), \(more) bytes more") {
                    try Self.decoded(bytes + Array("\nand more".utf8.prefix(more)), coding, by: count)
                }
            }
        }
    }

    @Test func damageIsNoticedWhereTheCodingHasAChecksum() {
        for index in [0, 1, 4] {
            var (coding, bytes) = CodedText.all[index]
            bytes[bytes.count - (coding == .gzip ? 8 : 2)] ^= 1
            #expect(throws: ContentDecoder.Failure.self, "\(coding)") { try Self.decoded(bytes, coding) }
        }
    }

    /// A frame of one byte under each window (RFC 8878 §3.1.1.1.2).
    @Test func windowBeyondThatOfTheContentCodingIsRefused() throws {
        func frame(_ window: UInt8) -> [UInt8] { [0x28, 0xb5, 0x2f, 0xfd, 0x00, window, 0x09, 0x00, 0x00, 0x61] }
        let largest = try Self.decoded(frame(13 << 3), .zstandard)
        #expect(largest.bytes == [0x61] && largest.isComplete)
        #expect(throws: ContentDecoder.Failure.self) { try Self.decoded(frame(14 << 3), .zstandard) }
    }

    @Test func decodingStopsWhenNoMoreIsWanted() throws {
        let decoder = ContentDecoder(.gzip)
        var pieces = 0
        try CodedText.bytes(CodedText.gzip).withUnsafeBytes { bytes in
            try decoder.decode(bytes) { _ in
                pieces += 1
                return false
            }
        }
        #expect(pieces == 1)
    }
}
