import FoundationEssentials
import MusterAPI
import Synchronization

/// What the clients asked for: all that the oracle knows besides Muster's own answers.
final class StormLedger: Sendable {
    private struct Notes {
        var files: [String: StormFile] = [:]
        var paths: [String: [String]] = [:]
        var removals: [String: Set<RemovedFiles>] = [:]
        var deeds: [String: Int] = [:]
        var surprises: [String] = []
        var capping: [String: Int] = [:]
        var capped: [String: Date] = [:]
        var count = 0
    }

    private let notes = Mutex(Notes())

    /// The number of the next file.
    func nextNumber() -> Int {
        notes.withLock { notes in
            notes.count += 1
            return notes.count
        }
    }

    /// Notes that a file is about to be added to a group.
    func wants(_ file: StormFile, in group: String) {
        notes.withLock { notes in
            notes.files[file.path] = file
            notes.paths[group, default: []].append(file.path)
        }
    }

    /// Notes that these tasks are about to be removed, or may just have been.
    func removes(_ paths: [String], _ mode: RemovedFiles) {
        notes.withLock { notes in
            for path in paths { notes.removals[path, default: []].insert(mode) }
        }
    }

    /// Notes that the cap of a group's connections is about to change, or (`isDone`) has changed as far as is known.
    func caps(_ group: String, isDone: Bool) {
        notes.withLock { notes in
            notes.capping[group, default: 0] += isDone ? -1 : 1
            if isDone { notes.capped[group] = Date() }
        }
    }

    /// Whether the cap of a group's connections has not changed since before that moment.
    func hasKeptCap(of group: String, since moment: Date) -> Bool {
        notes.withLock { $0.capping[group, default: 0] == 0 && ($0.capped[group] ?? .distantPast) < moment }
    }

    /// Notes that a verb was sent, with this outcome.
    func did(_ deed: String) { notes.withLock { $0.deeds[deed, default: 0] += 1 } }

    /// Notes an outcome that nothing explains.
    func isSurprised(by surprise: String) { notes.withLock { $0.surprises.append(surprise) } }

    /// Every file that was ever asked for, by its path.
    var files: [String: StormFile] { notes.withLock { $0.files } }
    /// The paths that were ever added to a group of that name.
    func paths(of group: String) -> [String] { notes.withLock { $0.paths[group] ?? [] } }
    /// How a task was removed, if it was.
    func removals(of path: String) -> Set<RemovedFiles> { notes.withLock { $0.removals[path] ?? [] } }
    /// How often each verb had each outcome.
    var deeds: [String: Int] { notes.withLock { $0.deeds } }
    /// How often a verb was sent.
    var verbs: Int { notes.withLock { $0.deeds.values.reduce(0, +) } }
    /// The outcomes that nothing explains.
    var surprises: [String] { notes.withLock { $0.surprises } }
}
