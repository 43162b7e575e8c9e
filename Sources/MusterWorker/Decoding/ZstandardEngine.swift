import CCodings

/// zstd (RFC 8878), also of several frames.
final class ZstandardEngine: ContentDecoder.Engine {
    private let state = ZSTD_createDCtx()
    private(set) var isAtEnd = false

    /// The base 2 logarithm of the largest window: as a content coding, zstd has at most 8 MiB (RFC 9659 §3). The library alone would take
    /// 128 MiB of memory for each content that asks for that.
    private static let windowLog: Int32 = 23

    init() {
        _ = ZSTD_DCtx_setParameter(state, ZSTD_d_windowLogMax, Self.windowLog)
    }

    deinit {
        ZSTD_freeDCtx(state)
    }

    func step(
        _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Failure) -> Int {
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        let left = ZSTD_decompressStream(state, &target, &source)
        guard ZSTD_isError(left) == 0 else {
            throw ContentDecoder.Failure(reason: String(cString: ZSTD_getErrorName(left)).lowercased())
        }
        // After the end of a frame, a call without input reports that another frame is due; ignore that.
        if source.pos > 0 || target.pos > 0 { isAtEnd = left == 0 }
        input = UnsafeRawBufferPointer(rebasing: input[source.pos...])
        return target.pos
    }
}
