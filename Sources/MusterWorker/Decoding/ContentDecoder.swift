import MusterCore

/// Decodes a coded content while it arrives, and knows whether the coding has reached its own end (RFC 9110 §8.4; range
/// contract, row 13).
///
/// For one thread at a time.
final class ContentDecoder {
    /// Why a content can't be decoded.
    struct Failure: Error {
        /// What is wrong with it.
        let reason: String
    }

    /// The part that differs between the libraries of the codings.
    protocol Engine: AnyObject {
        /// Decodes from the front of `input` into `output`, and removes the bytes that it read from `input`. Returns the
        /// number of bytes written.
        func step(
            _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
        ) throws(Failure) -> Int
        /// Whether the bytes read so far end where the coding ends.
        var isAtEnd: Bool { get }
    }

    private static let pieceBytes = 256 << 10

    private let engine: any Engine
    private let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceBytes, alignment: 16)
    /// Whether no bytes have arrived so far.
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

    /// Whether the content that arrived so far is complete. An empty body counts as empty content, as other clients treat it.
    var isComplete: Bool { isUntouched || engine.isAtEnd }

    /// Decodes the next bytes of the body and passes the result to `take`, piece by piece, until `take` returns `false`.
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
