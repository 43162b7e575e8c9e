import CCodings

/// br (RFC 7932).
final class BrotliEngine: ContentDecoder.Engine {
    private let state = BrotliDecoderCreateInstance(nil, nil, nil)

    deinit {
        BrotliDecoderDestroyInstance(state)
    }

    var isAtEnd: Bool { BrotliDecoderIsFinished(state) != 0 }

    func step(
        _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Failure) -> Int {
        guard !isAtEnd else { throw ContentDecoder.Failure(reason: "something else follows its end") }
        var (unread, free) = (input.count, output.count)
        var next = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var place = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let result = BrotliDecoderDecompressStream(state, &unread, &next, &free, &place, nil)
        guard result != BROTLI_DECODER_RESULT_ERROR else { throw ContentDecoder.Failure(reason: "it is malformed") }
        input = UnsafeRawBufferPointer(rebasing: input[(input.count - unread)...])
        return output.count - free
    }
}
