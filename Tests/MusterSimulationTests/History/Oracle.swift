import MusterCore

@testable import MusterStore
@testable import MusterStoreModel

/// Judges a history at its end. It knows the contents of the origins, the disk, and the database; not what the workers think.
struct Oracle {
    private let history: SimulatedHistory

    init(_ history: SimulatedHistory) { self.history = history }

    /// Whether a group has ended.
    func isOver(_ group: String) -> Bool {
        history.database.read { $0.model.groups[group]?.tasks.values.allSatisfy(\.state.isTerminal) ?? true }
    }

    /// Whether all groups have ended, and everything that is to be deleted is.
    var isOver: Bool {
        databases.allSatisfy { database in
            database.read { state in
                state.model.purges.isEmpty && state.model.groups.values.allSatisfy(\.state.isTerminal)
            }
        }
    }

    private var databases: [SimulatedDatabase] { [history.database, history.stranger] }

    /// Groups that are held up by what happens to others (I14, I19).
    func delayedByOthers() -> [String] {
        isOver("g2")
            ? [] : ["I19: g2 has not ended after \(history.age) ms, though only g1 and its origin are in trouble"]
    }

    /// What is wrong at the end.
    func problems() -> [String] {
        databases.flatMap { $0.read { $0.complaints } + unfinished($0) } + history.network.problems
            + history.disk.problems
            + files(of: history.database, history.added) + files(of: history.stranger, history.strangers)
            + strays + completions + waste
    }

    /// I14: what has not ended.
    private func unfinished(_ database: SimulatedDatabase) -> [String] {
        database.read { state in
            var problems: [String] = []
            for (name, group) in state.model.groups.sorted(by: { $0.key < $1.key }) where !group.state.isTerminal {
                for (key, task) in group.tasks.sorted(by: { $0.key < $1.key }) where !task.state.isTerminal {
                    problems.append("I14: \(name)/\(key) is \(task.state), \(task.chunks)")
                }
                if problems.isEmpty { problems.append("I14: \(name) has not ended") }
            }
            for (leftover, purge) in state.model.purges { problems.append("I13: \(leftover) is not deleted: \(purge)") }
            return problems
        }
    }

    /// The task that a path belongs to: of those that have succeeded, the last one.
    private func owners(in database: SimulatedDatabase) -> [String: TaskID] {
        database.read { state in
            var owners: [String: TaskID] = [:]
            for (id, facts) in state.facts where facts.state == .succeeded && !facts.isRemoved {
                let other = owners[facts.path].flatMap { state.facts[$0]?.ended } ?? -1
                if facts.ended > other { owners[facts.path] = id }
            }
            return owners
        }
    }

    /// I8, I18: every succeeded file is at its path, whole, and of one version, whatever the other installation does.
    private func files(of database: SimulatedDatabase, _ added: [TaskID: Plan.Task]) -> [String] {
        let deleted = database === history.database ? [] : deleted
        return owners(in: database).sorted { $0.key < $1.key }.compactMap { path, id in
            guard let task = added[id] else { return "\(path) belongs to no task" }
            // Another file may stand there by now.
            if deleted.contains(path) { return nil }
            guard let content = history.disk.content(at: path) else { return "I8: \(path) of task \(id) is missing" }
            let contents = history.origins[task.origin].contents(of: "/\(task.file)")
            guard !contents.contains(content) else {
                let isDurable = history.disk.durableContent(at: path) == content
                return isDurable ? nil : "I8: \(path) of task \(id) is not on storage"
            }
            let sizes = contents.map(\.count)
            return "I8: \(path) of task \(id) has \(content.count) bytes that the origin never had (\(sizes))"
        }
    }

    /// Paths whose files clients had deleted. Their owner does that also where another installation counts on them: for a deletion that was
    /// asked for, `FileRemoval` looks at the mark's owner and the size alone.
    private var deleted: Set<String> {
        history.database.read { state in Set(state.sizesToRemove.keys.compactMap { state.facts[$0]?.path }) }
    }

    /// I13: nothing is left of tasks that were cancelled or removed, and no other file was made.
    private var strays: [String] {
        let placed = databases.reduce(into: Set<String>()) { $0.formUnion(owners(in: $1).keys) }
        let failed = databases.reduce(into: Set<String>()) { paths, database in
            paths.formUnion(
                database.read { state in
                    state.facts.values.filter { $0.state == .failed && !$0.isRemoved }.map(\.path)
                })
        }
        let excused = shared.union(history.database.read { $0.kept })
        var problems = history.disk.files.filter {
            !placed.contains($0) && !failed.contains($0) && !excused.contains($0)
        }
        .map { "I13: \($0) is left, and belongs to no task" }
        let live = history.database.read { state in
            Set(state.facts.filter { $0.value.state == .failed && !$0.value.isRemoved }.map { "\($0.key)" })
        }
        let parts = ".muster/\(history.database.installation)/parts/"
        for path in history.disk.ownFiles where path.hasPrefix(parts) {
            let name = path.split(separator: "/").last ?? ""
            guard let task = name.split(separator: ".").first, !name.hasPrefix("probe"), !live.contains(String(task))
            else { continue }
            problems.append("I13: the part \(path) is left")
        }
        return problems
    }

    /// Paths at which a task has put the file that another task was to put there. That one takes the file over with its mark, so that the
    /// first one does not delete it any more, and the second one does not either if it is removed before the first.
    private var shared: Set<String> {
        let added = history.added
        return history.database.read { state in
            let placed = state.facts.filter { $0.value.crc != nil }
            return Set(
                placed.filter { id, facts in
                    state.facts.contains {
                        $0.key != id && $0.value.path == facts.path && added[$0.key]?.file == added[id]?.file
                    }
                }.map(\.value.path))
        }
    }

    /// I7: every group ends once in each generation.
    private var completions: [String] {
        history.database.read { state in
            var counts: [String: Int] = [:]
            for event in state.model.events where event.contains("dev.muster.group.") && !event.contains("removed") {
                let words = event.split(separator: " ")
                counts["\(words[2]) \(words.last ?? "")", default: 0] += 1
            }
            return counts.filter { $0.value > 1 }.map { "I7: \($0.key) has ended \($0.value) times" }
        }
    }

    /// I16: where nothing fails, nothing is fetched twice; where workers die, no more than was not durable. A tail that is given to another
    /// worker may come in the middle of a piece, and origins are asked for single bytes of files that they have served.
    private var waste: [String] {
        guard history.plan.theme == .calm || history.plan.theme == .deaths else { return [] }
        var wanted: Int64 = 64
        for task in history.added.values { wanted += Int64(history.plan.files[task.file].size) }
        wanted += Int64(history.rare["a running chunk was split"] ?? 0) * SimulatedLoop.largestPiece
        let fetched = history.network.deliveredBytes
        let lost = history.deaths.reduce(0) {
            $0 + history.network.delivered(to: $1.worker, since: $1.at - 5_000_000_000)
        }
        return fetched <= wanted + lost
            ? [] : ["I16: \(fetched) bytes were fetched for \(wanted), and \(lost) were not durable when workers died"]
    }
}
