import MusterAPI
import MusterCore

/// The names that a directory has given to the files of its URLs: a URL keeps its own, wherever it stands in a later list, and whichever others
/// stand there.
///
/// A task that says its path itself keeps that. Only where `--if-exists rename` has stored its file beside another one is it looked for there.
struct KeptNames {
    /// Where a file of a list stands, or will, if that is not where the list alone would put it.
    struct Place {
        /// The task's key.
        let key: String
        /// Its sources.
        let urls: [String]
        /// The path that the list gives it.
        let wanted: String
        /// The path that it has.
        let path: DestinationPath
        /// Whether its file is there.
        let isThere: Bool
        /// Whether it stands beside another file that has the path that its task says.
        let isBeside: Bool
        /// The finished task of the same sources at the path that the list gives it, if that is known.
        let own: TaskDocument?
    }

    /// The task of an earlier list that a path belongs to.
    private struct Owner {
        var task: TaskDocument
        var isThere: Bool
        var isRenamed: Bool

        /// What is there counts most, then what is unfinished; of equals, what was finished last.
        var rank: (Int, Int64, String) { (level, task.finishedAt?.microseconds ?? 0, task.path) }
        var level: Int { isThere ? 2 : task.state.isTerminal ? 0 : 1 }

        func isSame(as other: Owner) -> Bool { task.key == other.task.key && task.urls == other.task.urls }
    }

    private let list: TaskList
    /// Whether bare URLs keep their names; if not, only what stands beside others is looked for.
    private let keepsURLs: Bool
    /// The names for which URLs of the list have got numbers.
    private var bases: Set<String> = []
    /// The tasks of earlier lists by their paths, as far as they may matter.
    private var owners: [String: Owner] = [:]
    /// The paths of all that may matter, also where the files are gone.
    private var known: Set<String> = []

    /// Nothing is known of earlier lists yet.
    init(of list: TaskList, keepsURLs: Bool) throws {
        (self.list, self.keepsURLs) = (list, keepsURLs)
        guard keepsURLs, list.isNumbered else { return }
        var bases: Set<String> = []
        try list.visitNames { task, suggested in
            if let suggested, suggested != task.path { bases.insert(suggested.string) }
        }
        self.bases = bases
    }

    /// Whether a URL of the list may have a path without being given it by the list alone.
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
        // What is gone has no name to keep.
        guard isThere || task.state != .succeeded else { return }
        var (owner, other) = (Owner(task: task, isThere: isThere, isRenamed: isRenamed), owners[task.path])
        if let known = other, known.isSame(as: owner) {
            owner.isRenamed = isRenamed || known.isRenamed
            other?.isRenamed = owner.isRenamed
        }
        if let other, other.rank > owner.rank { owner = other }
        owners[task.path] = owner
    }

    /// Where files of the list stand that have other paths than it gives them, by the keys of their tasks.
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

    /// Whether a known task stands where a task of the list may look for its file, other than at the path that the list gives it.
    private func isName(_ known: Owner, of task: TaskSpecification, _ suggested: DestinationPath?) -> Bool {
        let path = known.task.path
        guard path != task.path.string else { return false }
        if known.isRenamed, known.task.key == task.key { return true }
        guard keepsURLs, let suggested else { return false }
        if path == suggested.string { return true }
        guard let number = (try? DestinationPath(validating: path))?.number else { return false }
        return suggested.numbered(number)?.string == path
    }

    /// Gives URLs other numbers where their paths belong to files of other ones, so that no two tasks have one path.
    ///
    /// - Parameters:
    ///   - places: those of ``places()`` that are true.
    ///   - isTaken: whether something stands at a path.
    /// - Returns: all places, and the keys of those that are as before.
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
                // A path that a task says is that task's.
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

    /// Whether the list has chosen a number for a URL that belongs to another one: any other number is as good.
    private func isForeign(_ task: TaskSpecification, _ suggested: DestinationPath) -> Bool {
        guard suggested != task.path, let owner = owners[task.path.string] else { return false }
        return owner.task.urls != task.sources.map(\.string)
    }
}
