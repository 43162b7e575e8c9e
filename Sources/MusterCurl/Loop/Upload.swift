/// How far the request's body was read.
struct Upload {
    private enum Source {
        case none
        case bytes([UInt8], offset: Int)
        case stream(any UploadSource, hasBegun: Bool)
    }

    private var source: Source
    /// Whether the source said `pause`, and libcurl waits for a resume.
    var isPaused = false
    /// The length of the body, nil if it is not known.
    let length: Int64?
    /// Whether there is no body to send.
    let isNone: Bool

    init(_ body: UploadBody) {
        switch body {
        case .none:
            source = .none
            length = 0
            isNone = true
        case .bytes(let bytes):
            source = .bytes(bytes, offset: 0)
            length = Int64(bytes.count)
            isNone = false
        case .stream(let stream, let length):
            source = .stream(stream, hasBegun: false)
            self.length = length
            isNone = false
        }
    }

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> UploadRead {
        switch source {
        case .none:
            return .end
        case .bytes(let bytes, let offset):
            let count = min(buffer.count, bytes.count - offset)
            guard count > 0 else { return .end }
            bytes.withUnsafeBytes {
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count]))
            }
            source = .bytes(bytes, offset: offset + count)
            return .bytes(count)
        case .stream(let stream, _):
            source = .stream(stream, hasBegun: true)
            let answer = stream.read(into: buffer)
            switch answer {
            case .bytes(let count): return count > 0 && count <= buffer.count ? answer : .abort
            case .pause:
                isPaused = true
                return .pause
            case .end, .abort: return answer
            }
        }
    }

    /// Goes back to a position, because libcurl has to send the body again; false if that cannot be done.
    mutating func seek(to position: Int64) -> Bool {
        switch source {
        case .none: return position == 0
        case .bytes(let bytes, _):
            guard position >= 0, position <= Int64(bytes.count) else { return false }
            source = .bytes(bytes, offset: Int(position))
            return true
        case .stream(_, let hasBegun): return !hasBegun && position == 0
        }
    }
}
