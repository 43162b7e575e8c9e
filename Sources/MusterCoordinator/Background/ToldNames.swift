import Logging
import Synchronization

/// The names that several live workers have. Each of them is logged when that begins.
final class ToldNames: Sendable {
    private let names = Mutex<Set<String>>([])

    /// Logs the names that were not in the list of the previous call.
    func tell(_ shared: [String], _ logger: Logger) {
        let before = names.withLock { names in
            defer { names = Set(shared) }
            return names
        }
        for name in shared where !before.contains(name) {
            logger.warning(
                "several live workers have one name; give each of them a --name of its own",
                metadata: [CoordinatorMetadata.worker: "\(name)"])
        }
    }
}
