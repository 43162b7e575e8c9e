/// The answer of an ``UploadSource``.
public enum UploadRead: Sendable, Hashable {
    /// This many bytes were written into the buffer, at least 1 and at most its size.
    case bytes(Int)
    /// Nothing there yet: ask again after ``CurlLoop/resume(_:)``.
    case pause
    /// The body is complete.
    case end
    /// The body cannot be completed: the transfer fails as `sendFailed`, and the connection is dropped.
    case abort
}

/// A body that is pulled piece by piece as the peer takes it, so that a long one needs no more memory.
///
/// Calls are made on the loop's thread and must not block. A source is read once: a request that would have to be sent
/// again (a redirect that keeps the method, a dead reused connection) fails as `sendFailed`.
public protocol UploadSource: AnyObject, Sendable {
    /// Fills the buffer with the next bytes of the body.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> UploadRead
}

/// The body of a request.
public enum UploadBody: Sendable {
    /// No body.
    case none
    /// These bytes; they can be sent again where a redirect or a dead connection asks for it.
    case bytes([UInt8])
    /// Pulled from the source; without a length it is sent in chunks (HTTP/1.1).
    case stream(any UploadSource, length: Int64?)
}
