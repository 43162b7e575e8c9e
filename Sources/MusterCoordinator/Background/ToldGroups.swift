import Logging
import Synchronization

/// The groups that suffer from data of their own, each of which is named in the log when that begins.
final class ToldGroups: Sendable {
    private let names = Mutex<Set<String>>([])

    /// Names the groups that were not among those of the last time.
    func tell(_ groups: [(name: String, trouble: String)], _ logger: Logger) {
        let before = names.withLock { names in
            defer { names = Set(groups.map { $0.name }) }
            return names
        }
        for (name, trouble) in groups where !before.contains(name) {
            logger.error(
                "group in trouble",
                metadata: [CoordinatorMetadata.group: "\(name)", CoordinatorMetadata.error: "\(trouble)"])
        }
    }
}
