import Glibc
import Synchronization

/// The serial executor of a connection: one thread that may block in libpq, so that no thread of Swift's pool ever
/// does.
///
/// The thread keeps the executor alive until `stop()`, which the owning actor calls as it goes; jobs refer to their
/// executor without owning it, and the last of them may still run then.
final class ConnectionThread: SerialExecutor {
    private struct Inbox {
        var jobs: [UnownedJob] = []
        var stopped = false
    }

    private let inbox = Mutex(Inbox())
    private let flag: EventFlag

    /// Starts the thread. Throws when the process has no descriptor or thread left.
    init() throws(PostgresError) {
        flag = try EventFlag()
        try BlockingThread.start { [self] in run() }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // Once the lock is free the job may run, and be the last one: the caller holds no reference to its executor, so that nothing of
        // it may be touched after that. With others waiting already, the flag is up or the thread is about to look.
        inbox.withLock { inbox in
            inbox.jobs.append(job)
            if inbox.jobs.count == 1 { flag.raise() }
        }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// Lets the thread end once its inbox is empty.
    func stop() {
        inbox.withLock { $0.stopped = true }
        flag.raise()
    }

    private func run() {
        while true {
            let (jobs, stopped) = inbox.withLock { inbox in
                defer { inbox.jobs = [] }
                return (inbox.jobs, inbox.stopped)
            }
            for job in jobs {
                job.runSynchronously(on: asUnownedSerialExecutor())
            }
            if jobs.isEmpty {
                if stopped { return }
                _ = Polling.wait(for: flag.descriptor, events: Int32(POLLIN), flag: flag, until: nil)
                flag.lower()
            }
        }
    }
}

/// Threads for C calls that block.
enum BlockingThread {
    private final class Body {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Runs `body` on a thread of its own, which ends with it. Throws when there is no thread to be had.
    static func start(_ body: @escaping @Sendable () -> Void) throws(PostgresError) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        // Enough for name resolution and TLS; the usual 8 MiB for each connection would be waste.
        pthread_attr_setstacksize(&attributes, 1 << 20)

        // A new thread inherits the mask: signals belong to the threads that expect them.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }

        let context = Unmanaged.passRetained(Body(body))
        var thread = pthread_t()
        let failure = pthread_create(
            &thread,
            &attributes,
            { context in
                guard let context else { return nil }
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            },
            context.toOpaque()
        )
        guard failure == 0 else {
            context.release()
            throw .connection(.init(kind: .outOfResources, message: "no thread left (errno \(failure))"))
        }
    }
}
