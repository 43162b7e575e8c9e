import Glibc
import Synchronization

/// Counts the threads of this process that are busy hashing, so that they do not become more than there are cores.
final class CoreBudget: Sendable {
    /// The budget of this process.
    static let shared = CoreBudget(cores: Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    /// How many threads may be busy.
    let cores: Int
    private let busy = Atomic<Int>(0)

    /// A budget of `cores`, at least 1.
    init(cores: Int) {
        self.cores = max(1, cores)
    }

    /// How many threads a pool of helpers needs: no more than that ever work beside the job that they help.
    var helpers: Int { min(max(1, cores - 1), 5) }

    /// Counts a thread that works even if no core is free.
    func enter() {
        busy.add(1, ordering: .relaxed)
    }

    /// Counts a thread that would help, if a core is free for it; returns whether one is.
    func tryEnter() -> Bool {
        var known = busy.load(ordering: .relaxed)
        while known < cores {
            let result = busy.compareExchange(expected: known, desired: known + 1, ordering: .relaxed)
            if result.exchanged { return true }
            known = result.original
        }
        return false
    }

    /// A thread is done.
    func leave() {
        busy.subtract(1, ordering: .relaxed)
    }
}
