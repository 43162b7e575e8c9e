import Dispatch
import ServiceLifecycle

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Ends, and with it the services beside it, when the process that started this one is gone: standard input is a pipe
/// whose other end that process holds and never writes to, so that its end is noticed in whatever way it ends.
struct ParentWatch: Service {
    /// Runs until the parent is gone, or until shutdown.
    func run() async throws {
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: .global())
        source.setEventHandler {
            var buffer: [UInt8] = [0]
            // 0 is the end of the pipe; an error can only mean that there is none to watch.
            if read(STDIN_FILENO, &buffer, buffer.count) <= 0, errno != EINTR, errno != EAGAIN { continuation.finish() }
        }
        source.resume()
        defer { source.cancel() }
        await cancelWhenGracefulShutdown {
            for await _ in ends {}
        }
    }
}
