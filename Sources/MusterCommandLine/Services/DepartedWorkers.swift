import Synchronization

/// The worker processes of `up` that were told to leave, and stay away.
final class DepartedWorkers: Sendable {
    private let names = Mutex<Set<String>>([])

    /// None of them has left.
    init() {}

    /// How many have.
    var count: Int { names.withLock { $0.count } }

    /// One of them has.
    func add(_ name: String) { names.withLock { _ = $0.insert(name) } }
}
