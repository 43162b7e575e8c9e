import MusterAPI
import MusterCore
import MusterWorker
import SystemPackage

/// Files that stand beside others whose name they should have (`--if-exists rename`): they stay this directory's files of their URLs.
extension GetSession {
    /// A task of a list, whatever its path.
    private struct Wish: Hashable {
        let key: String
        let urls: [String]
    }

    /// Where files of this request stand that an earlier one has stored at numbered names, by the keys of their tasks. Each is told.
    ///
    /// - Returns: nothing where the rule for files that are there is to choose the name, or to fail.
    func numberedPlaces(in groups: [GroupDocument]) async throws -> [String: DestinationPath] {
        let groups = groups.filter { $0.name.hasPrefix(Self.prefix) && $0.tasks.succeeded > 0 }
        var numbered: [Wish: TaskDocument] = [:]
        for group in groups where group.policy?.ifExists == .rename {
            for task in try await finished(in: group) where task.path != task.key {
                let wish = Wish(key: task.key, urls: task.urls)
                if let other = numbered[wish],
                    (other.finishedAt?.microseconds ?? 0) > (task.finishedAt?.microseconds ?? 0)
                {
                    continue
                }
                numbered[wish] = task
            }
        }
        guard !numbered.isEmpty else { return [:] }
        var found: [Wish: (wanted: String, place: DestinationPath)] = [:]
        try tasks.visit { task, _ in
            let wish = Wish(key: task.key, urls: task.sources.map(\.string))
            guard let other = numbered[wish], other.path != task.path.string,
                let place = try? DestinationPath(validating: other.path)
            else { return }
            found[wish] = (task.path.string, place)
        }
        found = try found.filter { try Directories.facts(ofFile: directory.appending($0.value.place.string)) != nil }
        guard !found.isEmpty else { return [:] }
        // A later run may have put it at its own name.
        for group in groups {
            for task in try await finished(in: group) {
                let wish = Wish(key: task.key, urls: task.urls)
                guard let file = found[wish], file.wanted == task.path,
                    let there = try Directories.facts(ofFile: directory.appending(task.path))
                else { continue }
                if try await !isChanged(task, there) { found[wish] = nil }
            }
        }
        let told = found.values.sorted { $0.wanted < $1.wanted }
        for file in told.prefix(SharedNames.told) {
            context.console.remark(
                TextWidth.escaped("\(file.place) has what belongs to \(file.wanted), where another file is or was"))
        }
        if told.count > SharedNames.told {
            context.console.remark("… and \(told.count - SharedNames.told) more have numbered names")
        }
        switch transfers.policy?.ifExists ?? .verify {
        case .verify, .replace: break
        case .fail, .rename: return [:]
        }
        return Dictionary(found.map { ($0.key.key, $0.value.place) }) { first, _ in first }
    }

    /// Forgets tasks of an earlier run of this request that want files at names which these don't have.
    ///
    /// - Returns: whether there were any.
    func forgetMisplaced(in group: GroupDocument) async throws -> Bool {
        guard !tasks.places.isEmpty else { return false }
        let keys = try await Page.all { try await patient.tasks(of: group.name, after: $0, limit: Limits.pageSize) }
            .filter { task in tasks.places[task.key].map { $0.string != task.path } ?? false }.map(\.key)
        try await inPages(keys) { _ = try await patient.removeTasks($0, of: group.name) }
        return !keys.isEmpty
    }
}
