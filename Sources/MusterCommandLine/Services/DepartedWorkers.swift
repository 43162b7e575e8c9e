import Synchronization

/// The worker processes of `up` that were told to leave, and stay away.
final class DepartedWorkers: Sendable {
    private let names = Mutex<Set<String>>([])

    /// None of them has left.
    init() {}

    /// The number of workers that have left.
    var count: Int { names.withLock { $0.count } }

    /// Records that a worker has left.
    func add(_ name: String) { names.withLock { _ = $0.insert(name) } }
}
