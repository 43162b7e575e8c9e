#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A thread of its own for work that blocks, so that no cooperative thread ever does.
struct LoopThread: Sendable {
    private final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    #if canImport(Darwin)
    private nonisolated(unsafe) let id: pthread_t
    #else
    private let id: pthread_t
    #endif

    /// Starts a thread; throws the error number if the system has none to give.
    init(_ body: @escaping @Sendable () -> Void) throws(CurlLoopError) {
        let start = Unmanaged.passRetained(Start(body))
        #if canImport(Darwin)
        var id: pthread_t?
        let code = pthread_create(&id, nil, { LoopThread.run($0) }, start.toOpaque())
        #else
        var id = pthread_t()
        let code = pthread_create(&id, nil, { LoopThread.run($0) }, start.toOpaque())
        #endif
        guard code == 0 else {
            start.release()
            throw .threadNotStarted(errno: code)
        }
        #if canImport(Darwin)
        guard let id else { throw .threadNotStarted(errno: EAGAIN) }
        #endif
        self.id = id
    }

    private static func run(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let context else { return nil }
        // A write to a closed TLS connection raises SIGPIPE in the writing thread; blocked here, it becomes EPIPE
        // without changing the disposition for the process. Other signals are for the main thread.
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
        Unmanaged<Start>.fromOpaque(context).takeRetainedValue().body()
        return nil
    }

    /// Waits until the thread is over. Blocks.
    func join() {
        pthread_join(id, nil)
    }

    /// Lets the thread end by itself.
    func detach() {
        pthread_detach(id)
    }
}

/// Nanoseconds of the monotonic clock.
func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

extension Duration {
    /// Whole nanoseconds, 0 for negative durations, saturated at 100 years.
    var nanosecondsClamped: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 3_155_760_000 else { return 3_155_760_000_000_000_000 }
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds) / 1_000_000_000
    }

    /// Milliseconds as libcurl's `long` takes them, at least 1, since 0 means "default" there.
    var millisecondsForCurl: Int {
        Int(Swift.min(Swift.max(nanosecondsClamped / 1_000_000, 1), UInt64(Int32.max)))
    }
}
