import Dispatch
import Glibc
import ServiceLifecycle

/// Ends, and so stops the services beside it, when the process that started this one is gone. Standard input is a pipe whose other end the
/// parent holds and never writes to, so that the end of the parent is noticed however it ends.
struct ParentWatch: Service {
    /// Runs until the parent is gone, or until shutdown.
    func run() async throws {
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        // A thread waits in `poll` for as long as the process lives: a dispatch source on a pipe whose other end is closed crashes now and
        // then in libdispatch's event loop.
        DispatchQueue(label: "muster.parent-watch").async {
            var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            var buffer: [UInt8] = [0]
            while true {
                guard poll(&input, 1, -1) > 0 else { continue }
                // 0 is the end of the pipe; an error can only mean that there is no pipe to watch.
                let count = read(STDIN_FILENO, &buffer, buffer.count)
                if count == 0 || count < 0 && errno != EINTR && errno != EAGAIN { break }
            }
            continuation.finish()
        }
        await cancelWhenGracefulShutdown {
            for await _ in ends {}
        }
    }
}
