import CCodings

/// gzip (RFC 1952), also of several members, and deflate: zlib (RFC 1950) or, as some servers mean it, bare (RFC 1951).
final class Inflater: ContentDecoder.Engine {
    private let state = UnsafeMutablePointer<inflate_state>.allocate(capacity: 1)
    private let isGzip: Bool
    private var isBegun = false
    private(set) var isAtEnd = false

    init(isGzip: Bool) {
        self.isGzip = isGzip
        isal_inflate_init(state)
    }

    deinit {
        state.deallocate()
    }

    func step(
        _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Failure) -> Int {
        if isAtEnd {
            guard try beginsAnother(&input) else { return 0 }
            isBegun = false
            isAtEnd = false
            isal_inflate_reset(state)
        }
        if !isBegun, let first = input.first {
            isBegun = true
            // The low four bits of zlib's first byte are 8. A bare stored block starts the same only with its first
            // padding bit set, which no encoder does.
            let isWrapped = first & 0x0f == 8
            state.pointee.crc_flag = UInt32(isGzip ? ISAL_GZIP : isWrapped ? ISAL_ZLIB : ISAL_DEFLATE)
        }
        state.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        state.pointee.avail_in = UInt32(input.count)
        state.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        state.pointee.avail_out = UInt32(output.count)
        let code = isal_inflate(state)
        guard code >= ISAL_DECOMP_OK, code != ISAL_NEED_DICT else {
            throw ContentDecoder.Failure(
                reason: code == ISAL_INCORRECT_CHECKSUM ? "its checksum is another one" : "it is malformed")
        }
        input = UnsafeRawBufferPointer(rebasing: input[(input.count - Int(state.pointee.avail_in))...])
        isAtEnd = muster_inflate_is_over(state) != 0
        // The library reads up to eight bytes ahead.
        guard !isAtEnd || isGzip || muster_inflate_unused(state) == 0 else { throw Self.somethingFollows }
        return output.count - Int(state.pointee.avail_out)
    }

    private static let somethingFollows = ContentDecoder.Failure(reason: "something else follows its end")

    /// Whether what follows an end is another member. Padding of zeros is dropped, as gzip does.
    private func beginsAnother(_ input: inout UnsafeRawBufferPointer) throws(ContentDecoder.Failure) -> Bool {
        if isGzip, input.first == 0x1f { return true }
        guard isGzip, input.allSatisfy({ $0 == 0 }) else {
            throw Self.somethingFollows
        }
        input = UnsafeRawBufferPointer(rebasing: input[input.count...])
        return false
    }
}
