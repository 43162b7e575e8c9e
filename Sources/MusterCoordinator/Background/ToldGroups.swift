import Logging
import Synchronization

/// The groups whose own data cause trouble. Each of them is logged when its trouble begins.
final class ToldGroups: Sendable {
    private let names = Mutex<Set<String>>([])

    /// Logs the groups that were not in the list of the previous call.
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
