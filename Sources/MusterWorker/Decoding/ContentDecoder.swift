import MusterCore

/// Takes the coding off a content while it comes, and knows whether that has come to its own end (RFC 9110 §8.4; range contract, row 13).
///
/// For one thread at a time.
final class ContentDecoder {
    /// Why a content can't be decoded.
    struct Failure: Error {
        /// What is wrong with it.
        let reason: String
    }

    /// The part of a coding's library that differs.
    protocol Engine: AnyObject {
        /// Decodes from the front of `input`, which loses what was read, into `output`. Returns how much of that was filled.
        func step(
            _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
        ) throws(Failure) -> Int
        /// Whether all that was read ends where the coding ends.
        var isAtEnd: Bool { get }
    }

    private static let pieceBytes = 256 << 10

    private let engine: any Engine
    private let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceBytes, alignment: 16)
    /// Whether nothing came so far.
    private(set) var isUntouched = true

    /// A decoder of a whole content.
    init(_ coding: ContentCoding) {
        engine =
            switch coding {
            case .gzip: Inflater(isGzip: true)
            case .deflate: Inflater(isGzip: false)
            case .brotli: BrotliEngine()
            case .zstandard: ZstandardEngine()
            }
    }

    deinit {
        piece.deallocate()
    }

    /// Whether the content that came so far is whole. An empty body is an empty content, as everybody else takes it.
    var isComplete: Bool { isUntouched || engine.isAtEnd }

    /// Decodes the next bytes of the body and hands on what they hold, piece by piece, until `take` wants no more.
    func decode(_ bytes: UnsafeRawBufferPointer, take: (UnsafeRawBufferPointer) -> Bool) throws(Failure) {
        guard !bytes.isEmpty else { return }
        isUntouched = false
        var input = bytes
        var mayHoldMore = false
        while !input.isEmpty || mayHoldMore {
            let before = input.count
            let count = try engine.step(&input, into: piece)
            if count > 0, !take(UnsafeRawBufferPointer(rebasing: piece[..<count])) { return }
            mayHoldMore = count == piece.count && !engine.isAtEnd
            guard count > 0 || input.count < before else { break }
        }
    }
}
