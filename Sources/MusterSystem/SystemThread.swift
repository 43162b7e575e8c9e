import Glibc
public import SystemPackage

/// A separate thread for work that blocks, so that no thread of Swift's pool is blocked. It must be joined or detached.
public struct SystemThread: Sendable {
    private final class Work: Sendable {
        let body: @Sendable () -> Void

        init(_ body: @escaping @Sendable () -> Void) {
            self.body = body
        }
    }

    private let id: pthread_t

    /// Starts a thread that runs `body` and ends with it.
    ///
    /// It blocks all signals: they are for the threads that expect them, and SIGPIPE of a write to a closed connection becomes EPIPE
    /// without a change for the whole process.
    ///
    /// - Throws: the system's error when it has no thread left.
    public init(_ body: @escaping @Sendable () -> Void) throws(Errno) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        // Enough for name resolution and TLS; buffers are on the heap. The usual 8 MiB for each thread would be wasted.
        pthread_attr_setstacksize(&attributes, 1 << 20)

        // A new thread inherits the mask.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }

        let work = Unmanaged.passRetained(Work(body))
        var id = pthread_t()
        let failure = pthread_create(
            &id, &attributes,
            { work in
                guard let work else { return nil }
                Unmanaged<Work>.fromOpaque(work).takeRetainedValue().body()
                return nil
            }, work.toOpaque())
        guard failure == 0 else {
            work.release()
            throw Errno(rawValue: failure)
        }
        self.id = id
    }

    /// Blocks until the thread has ended.
    public func join() {
        pthread_join(id, nil)
    }

    /// Lets the thread end by itself.
    public func detach() {
        pthread_detach(id)
    }
}
