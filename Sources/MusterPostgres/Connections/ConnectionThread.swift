import Glibc
import MusterSystem
import Synchronization
import SystemPackage

/// The serial executor of a connection: one thread that may block in libpq, so that no thread of Swift's pool ever
/// does.
///
/// The thread keeps the executor alive until `stop()`, which the owning actor calls when it is released. Jobs refer to
/// their executor without owning it, and the last job may still run then.
final class ConnectionThread: SerialExecutor {
    private struct Inbox {
        var jobs: [UnownedJob] = []
        var stopped = false
    }

    private let inbox = Mutex(Inbox())
    private let flag: EventDescriptor

    /// Starts the thread. Throws when the process has no descriptor or thread left.
    init() throws(PostgresError) {
        flag = try .flag()
        try SystemThread.run { [self] in run() }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // Once the lock is free the job may run, and be the last one. The caller holds no reference to the executor, so
        // nothing of the executor may be touched after that. If other jobs wait already, the flag is up or the thread is
        // about to look.
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
                flag.take()
            }
        }
    }
}

extension PostgresError {
    /// The system has no thread or descriptor left.
    init(lacking what: String, _ error: Errno) {
        self = .connection(.init(kind: .outOfResources, message: "no \(what) left (errno \(error.rawValue))"))
    }
}

extension EventDescriptor {
    /// A flag by which a thread that waits for a server is woken.
    static func flag() throws(PostgresError) -> EventDescriptor {
        do { return try EventDescriptor(.flag) } catch { throw PostgresError(lacking: "descriptor", error) }
    }
}

extension SystemThread {
    /// Runs `body` on a thread of its own, which ends with it.
    static func run(_ body: @escaping @Sendable () -> Void) throws(PostgresError) {
        do { try SystemThread(body).detach() } catch { throw PostgresError(lacking: "thread", error) }
    }
}
