import MusterAPI
import MusterCore
import MusterWorker
import SystemPackage

/// Files that keep the names they have in this directory, and files with a numbered name beside another file (`--if-exists rename`).
extension GetSession {
    /// The list, with the places of files that are, or will be, elsewhere than the list alone would put them (``KeptNames``). Each place is
    /// printed, as are names with new numbers.
    ///
    /// There are no such places with `--if-exists rename` and `fail`: the rule itself chooses the name, or fails.
    func placed(in groups: [GroupDocument]) async throws -> TaskList {
        let keeps =
            switch transfers.policy?.ifExists ?? .verify {
            case .verify, .replace: true
            case .fail, .rename: false
            }
        var list = tasks
        var kept: Set<String> = []
        if let (names, groups) = try await earlierNames(in: groups, keepsURLs: keeps) {
            let places = try await confirmed(names, in: groups)
            if keeps {
                (list.places, kept) = try names.settled(places) {
                    try Directories.facts(ofFile: directory.appending($0.string)) != nil
                }
            }
            tell(places.filter { keeps ? kept.contains($0.key) : $0.value.isBeside })
        }
        for line in try list.renamings(besides: kept) { context.console.remark(TextWidth.escaped(line)) }
        return list
    }

    /// The names that the lists of this directory have given; `nil` if only this request was made here, since its own group knows its paths.
    private func earlierNames(
        in groups: [GroupDocument], keepsURLs: Bool
    ) async throws -> (KeptNames, [GroupDocument])? {
        let groups = groups.filter {
            $0.name.hasPrefix(Self.prefix) && $0.tasks.total > 0 && (keepsURLs || $0.tasks.succeeded > 0)
        }
        let renaming = groups.filter { $0.policy?.ifExists == .rename }
        guard !renaming.isEmpty || keepsURLs && groups.contains(where: { !$0.name.hasPrefix(name(1)) }) else {
            return nil
        }
        var names = try KeptNames(of: tasks, keepsURLs: keepsURLs)
        for group in keepsURLs ? groups : renaming {
            let renames = group.policy?.ifExists == .rename
            try await eachTask(of: group) { task in
                let isFinished = task.state == .succeeded
                let isRenamed = renames && isFinished && task.path != task.key
                guard isRenamed || names.mayMatter(task.path) else { return }
                let isThere = try isFinished && Directories.facts(ofFile: directory.appending(task.path)) != nil
                names.add(task, isRenamed: isRenamed, isThere: isThere)
            }
        }
        return (names, groups)
    }

    /// The places that earlier lists have given to files of this one, except for files that a run has put where this list puts them.
    private func confirmed(
        _ names: KeptNames, in groups: [GroupDocument]
    ) async throws -> [String: KeptNames.Place] {
        var places = try names.places()
        var own = places.values.compactMap { place in place.own.map { (place.key, $0) } }
        let unsure = Dictionary(grouping: places.values.filter { !names.mayMatter($0.wanted) }, by: \.wanted)
        for group in unsure.isEmpty ? [] : groups {
            try await eachTask(of: group) { task in
                for place in unsure[task.path] ?? [] where place.urls == task.urls {
                    if task.state == .succeeded || !place.isThere { own.append((place.key, task)) }
                }
            }
        }
        for (key, task) in own where places[key] != nil {
            if task.state == .succeeded {
                guard let file = try Directories.facts(ofFile: directory.appending(task.path)),
                    try await !isChanged(task, file)
                else { continue }
            }
            places[key] = nil
        }
        return places
    }

    private func eachTask(of group: GroupDocument, _ body: (TaskDocument) throws -> Void) async throws {
        var after: String?
        repeat {
            let page = try await patient.tasks(of: group.name, after: after, limit: Limits.pageSize)
            for task in page.items where task.state != .cancelled { try body(task) }
            after = page.next
        } while after != nil
    }

    private func tell(_ places: [String: KeptNames.Place]) {
        let told = places.values.sorted { $0.path.string < $1.path.string }
        for file in told.prefix(SharedNames.told) {
            context.console.remark(
                TextWidth.escaped(
                    file.isBeside
                        ? "\(file.path) has what belongs to \(file.wanted), where another file is or was"
                        : "\(file.urls[0]) is stored as \(file.path), as before"))
        }
        if told.count > SharedNames.told {
            context.console.remark("… and \(told.count - SharedNames.told) more keep their names")
        }
    }

    /// Forgets tasks of an earlier run of this request whose paths differ from the places that their files have.
    ///
    /// - Returns: whether there were such tasks.
    func forgetMisplaced(in group: GroupDocument) async throws -> Bool {
        guard !tasks.places.isEmpty else { return false }
        let keys = try await Page.all { try await patient.tasks(of: group.name, after: $0, limit: Limits.pageSize) }
            .filter { task in tasks.places[task.key].map { $0.string != task.path } ?? false }.map(\.key)
        try await inPages(keys) { _ = try await patient.removeTasks($0, of: group.name) }
        return !keys.isEmpty
    }
}
