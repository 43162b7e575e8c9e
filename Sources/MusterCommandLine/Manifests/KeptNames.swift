import MusterAPI
import MusterCore

/// The names that a directory has given to the files of its URLs. A URL keeps its name, wherever it is in a later list, and whatever other URLs
/// the list has.
///
/// A task with an explicit path keeps that path. Only if `--if-exists rename` has stored its file beside another file, it is looked for there.
struct KeptNames {
    /// Where a file of a list is, or will be, if the list alone would put it elsewhere.
    struct Place {
        /// The task's key.
        let key: String
        /// Its sources.
        let urls: [String]
        /// The path that the list gives it.
        let wanted: String
        /// The path that the file has or gets.
        let path: DestinationPath
        /// Whether its file is there.
        let isThere: Bool
        /// Whether `--if-exists rename` has stored it beside another file, which has the path of its task.
        let isBeside: Bool
        /// The finished task of the same sources at the path that the list gives it, if that is known.
        let own: TaskDocument?
    }

    /// The task of an earlier list that a path belongs to.
    private struct Owner {
        var task: TaskDocument
        var isThere: Bool
        var isRenamed: Bool

        /// The precedence among owners; the highest wins. A file that is there comes first, then an unfinished task; of equals, the last to finish.
        var rank: (Int, Int64, String) { (level, task.finishedAt?.microseconds ?? 0, task.path) }
        var level: Int { isThere ? 2 : task.state.isTerminal ? 0 : 1 }

        func isSame(as other: Owner) -> Bool { task.key == other.task.key && task.urls == other.task.urls }
    }

    private let list: TaskList
    /// Whether bare URLs keep their names; if not, only files that were stored beside others are looked for.
    private let keepsURLs: Bool
    /// The suggested names that several URLs of the list share, so that some of them have numbers.
    private var bases: Set<String> = []
    /// The tasks of earlier lists by their paths, as far as they may matter.
    private var owners: [String: Owner] = [:]
    /// The paths of all tasks that may matter, also of those whose files are gone.
    private var known: Set<String> = []

    /// The names of a list, before any task of earlier lists is added.
    init(of list: TaskList, keepsURLs: Bool) throws {
        (self.list, self.keepsURLs) = (list, keepsURLs)
        guard keepsURLs, list.isNumbered else { return }
        var bases: Set<String> = []
        try list.visitNames { task, suggested in
            if let suggested, suggested != task.path { bases.insert(suggested.string) }
        }
        self.bases = bases
    }

    /// Whether a URL of the list may have this path although the list alone would not give it.
    func mayMatter(_ path: String) -> Bool {
        bases.contains(path) || (try? DestinationPath(validating: path))?.number != nil
    }

    /// Adds a task of an earlier list that was not cancelled.
    ///
    /// - Parameters:
    ///   - isRenamed: whether `--if-exists rename` has chosen its path.
    ///   - isThere: whether it is finished, and its file is there.
    mutating func add(_ task: TaskDocument, isRenamed: Bool, isThere: Bool) {
        known.insert(task.path)
        // A finished file that is gone has no name to keep.
        guard isThere || task.state != .succeeded else { return }
        var (owner, other) = (Owner(task: task, isThere: isThere, isRenamed: isRenamed), owners[task.path])
        if let known = other, known.isSame(as: owner) {
            owner.isRenamed = isRenamed || known.isRenamed
            other?.isRenamed = owner.isRenamed
        }
        if let other, other.rank > owner.rank { owner = other }
        owners[task.path] = owner
    }

    /// The places of files whose paths are not those that the list gives them, by the keys of their tasks.
    func places() throws -> [String: Place] {
        guard !owners.isEmpty else { return [:] }
        let byURLs = Dictionary(grouping: owners.values) { $0.task.urls }
        var places: [String: Place] = [:]
        try list.visitNames { task, suggested in
            let urls = task.sources.map(\.string)
            let names = (byURLs[urls] ?? []).filter { isName($0, of: task, suggested) }
            guard let found = names.max(by: { $0.rank < $1.rank }),
                let path = try? DestinationPath(validating: found.task.path)
            else { return }
            let own = owners[task.path.string].flatMap { $0.task.urls == urls ? $0 : nil }
            if let own, !own.isThere, own.level >= found.level { return }
            places[task.key] = Place(
                key: task.key, urls: urls, wanted: task.path.string, path: path, isThere: found.isThere,
                isBeside: found.isRenamed && found.task.key == task.key, own: own?.isThere == true ? own?.task : nil)
        }
        return places
    }

    /// Whether a known task has a path at which a task of the list may look for its file, apart from the path that the list gives it.
    private func isName(_ known: Owner, of task: TaskSpecification, _ suggested: DestinationPath?) -> Bool {
        let path = known.task.path
        guard path != task.path.string else { return false }
        if known.isRenamed, known.task.key == task.key { return true }
        guard keepsURLs, let suggested else { return false }
        if path == suggested.string { return true }
        guard let number = (try? DestinationPath(validating: path))?.number else { return false }
        return suggested.numbered(number)?.string == path
    }

    /// Gives URLs other numbers where their paths belong to files of other URLs, so that no two tasks have one path.
    ///
    /// - Parameters:
    ///   - places: the confirmed ones of ``places()``.
    ///   - isTaken: whether a path exists in the directory.
    /// - Returns: all places, and the keys of tasks whose files keep the places they had.
    func settled(
        _ places: [String: Place], isTaken: (DestinationPath) throws -> Bool
    ) throws -> (places: [String: DestinationPath], kept: Set<String>) {
        guard !owners.isEmpty else { return ([:], []) }
        let found = Dictionary(places.values.map { ($0.path.string, $0.key) }) { min($0, $1) }
        var refused: Set<String> = []
        var listed: Set<String> = []
        var others: [(task: TaskSpecification, suggested: DestinationPath)] = []
        try list.visitNames { task, suggested in
            let path = task.path.string
            if task.path.number != nil { listed.insert(path) }
            if let suggested {
                if found[path] != nil || isForeign(task, suggested) { others.append((task, suggested)) }
            } else {
                // An explicit path belongs to the task that names it.
                if let key = found[path] { refused.insert(key) }
                if places[task.key]?.isBeside == false { refused.insert(task.key) }
            }
        }
        let kept = places.filter { found[$0.value.path.string] == $0.key && !refused.contains($0.key) }
        let paths = Set(kept.values.map(\.path))
        var settled = kept.mapValues(\.path)
        var numbers: [String: Int] = [:]
        for (task, suggested) in others
        where settled[task.key] == nil && (paths.contains(task.path) || isForeign(task, suggested)) {
            var number = numbers[suggested.string, default: 2]
            while let path = suggested.numbered(number) {
                number += 1
                guard !listed.contains(path.string), !known.contains(path.string), try !isTaken(path) else { continue }
                settled[task.key] = path
                break
            }
            numbers[suggested.string] = number
        }
        return (settled, Set(kept.keys))
    }

    /// Whether the list has chosen a numbered path for a URL that belongs to another URL. Any other number is as good.
    private func isForeign(_ task: TaskSpecification, _ suggested: DestinationPath) -> Bool {
        guard suggested != task.path, let owner = owners[task.path.string] else { return false }
        return owner.task.urls != task.sources.map(\.string)
    }
}
