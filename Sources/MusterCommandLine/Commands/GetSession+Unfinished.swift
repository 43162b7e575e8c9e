import MusterAPI
import MusterCore

/// What happens to the unfinished requests of a directory when another request is made there.
extension GetSession {
    /// Metadata of a group of `get` that identifies how its sources are asked, since the coordinator never shows the options themselves.
    var settingsMark: JSONValue {
        var identity = RequestIdentity()
        identity.add(transfers.fetch, transfers.resolver)
        return .object(["settings": .string(identity.text)])
    }

    /// Has the sources of a group asked as this request says. Its bytes stay: validators prove them, however they were asked for.
    func askAsWanted(_ group: GroupDocument) async throws {
        guard group.metadata != settingsMark else { return }
        let patch = GroupPatch(
            fetch: transfers.fetch.map { .set($0) } ?? .clear, resolver: transfers.resolver.map { .set($0) } ?? .clear,
            metadata: .set(settingsMark))
        _ = try await patient.change(group: group.name, patch)
    }

    /// Pauses the other requests of this directory, since the user made this one now. Earlier runs of this one are paused too if each run asks anew.
    func pauseOthers(among groups: [GroupDocument], but own: String) async throws {
        for group in otherUnfinished(among: groups, but: asksAnew ? nil : own) {
            _ = try await patient.apply(.pause, to: group.name)
        }
    }

    private func otherUnfinished(among groups: [GroupDocument], but own: String?) -> [GroupDocument] {
        groups.filter { !$0.state.isTerminal && $0.name != own }
    }

    /// Whether a group is one of this request.
    private func isOwn(_ group: GroupDocument) -> Bool { group.name.hasPrefix(Self.prefix + survey.identity.text) }

    /// The groups of this request before a generation.
    func ownGroups(before generation: Int) async throws -> [GroupDocument] {
        let names = Set((1..<max(1, generation)).map(name))
        return try await StatusCommand.groups(patient).filter { names.contains($0.name) }
    }

    /// Where each run asks for everything anew, puts failed tasks of earlier runs back if they have bytes, and pauses them; this run goes on with them.
    func reviveBegun(before generation: Int) async throws {
        for group in try await ownGroups(before: generation) where group.tasks.failed > 0 {
            let begun = try await Page.all {
                try await patient.tasks(of: group.name, state: .failed, after: $0, limit: Limits.pageSize)
            }.filter { $0.bytes.done > 0 }.map(\.key)
            guard !begun.isEmpty else { continue }
            try await inPages(begun) { _ = try await patient.apply(.retry, to: group.name, keys: $0) }
            _ = try await patient.apply(.pause, to: group.name)
        }
    }

    /// Forgets tasks of earlier groups of this request that the last group has finished too, and tasks without bytes. What only earlier groups have
    /// finished or begun stays: the origin can be asked about these files, and the fetches continued.
    func forgetEarlier(than generation: Int, _ last: GroupDocument) async throws {
        let earlier = try await ownGroups(before: generation)
        guard last.state != .succeeded, !earlier.isEmpty else {
            for group in earlier { _ = try await patient.removeGroup(group.name) }
            return
        }
        let known = Set(
            try await Page.all {
                try await patient.tasks(of: last.name, state: .succeeded, after: $0, limit: Limits.pageSize)
            }.map(\.key))
        for group in earlier {
            let all = try await Page.all { try await patient.tasks(of: group.name, after: $0, limit: Limits.pageSize) }
            let stale = all.filter { task in
                known.contains(task.key) || task.state != .succeeded && task.bytes.done == 0
            }.map(\.key)
            if stale.count == all.count {
                _ = try await patient.removeGroup(group.name)
            } else {
                try await inPages(stale) { _ = try await patient.removeTasks($0, of: group.name) }
            }
        }
    }

    /// Tasks that an unfinished request of this directory has begun and this request wants in the same way.
    struct Held {
        /// The group of the unfinished request.
        fileprivate let group: GroupDocument
        /// The tasks as that group has them.
        fileprivate let tasks: [TaskDocument]
        /// Their keys in this request.
        fileprivate let keys: Set<String>
    }

    /// Frees the paths of this request that unfinished requests of this directory hold for other tasks: those tasks are dropped, since this
    /// request was made later. The other tasks of these requests stay, paused.
    ///
    /// - Returns: the tasks that both want in the same way; `nil` if there is no unfinished request.
    func freePaths(for own: String) async throws -> [Held]? {
        let others = otherUnfinished(among: try await StatusCommand.groups(patient), but: own)
        var held: [Held] = []
        for group in others {
            let common = try await common(with: group)
            if !common.dropped.isEmpty {
                let bytes = ByteCount(bytes: common.dropped.reduce(0) { $0 + $1.bytes.done })
                if !isOwn(group) || bytes.bytes > 0 {
                    context.console.remark(
                        "dropped \(Self.files(common.dropped.count)) of an unfinished request that this one wants in another way: \(bytes) had come"
                    )
                }
                try await inPages(common.dropped.map(\.key)) { _ = try await patient.removeTasks($0, of: group.name) }
            }
            if !common.shared.isEmpty { held.append(Held(group: group, tasks: common.shared, keys: common.keys)) }
        }
        return others.isEmpty ? nil : held
    }

    /// The keys of this request, or only the chosen ones, without those that unfinished requests have begun; none if `held` is empty.
    func ownKeys(among chosen: Set<String>?, without held: [Held]) throws -> Set<String> {
        guard !held.isEmpty else { return [] }
        var keys: Set<String> = []
        try tasks.visit { task, _ in
            if chosen?.contains(task.key) != false { keys.insert(task.key) }
        }
        for part in held { keys.subtract(part.keys) }
        return keys
    }

    /// Has the unfinished request fetch the rest of the files that it has begun, and waits for them.
    ///
    /// - Parameter name: the group of the tasks that only this request wants; it does not exist if there are none.
    func goOn(_ held: Held, beside name: String) async throws {
        let (group, tasks) = (held.group, held.tasks)
        context.console.remark("going on with \(Self.files(tasks.count)) of an unfinished request")
        try await askAsWanted(group)
        if group.state == .open { _ = try await patient.apply(.seal, to: group.name) }
        let start = try await watcher("").lastPosition()
        let since = try await patient.groupExplanation(of: group.name).at
        let part = GroupPart(before: try await patient.group(group.name), tasks: tasks, beside: name)
        try await inPages(tasks.map(\.key)) { _ = try await patient.apply(.resume, to: group.name, keys: $0) }
        try await awaitWorker()
        _ = try await wait(group.name, after: start, since: since, part: part)
    }

    private static func files(_ count: Int) -> String { count == 1 ? "a file" : "\(count) files" }

    /// The unfinished tasks of a group at the paths of this request: those that both want in the same way, with their keys here, and those that
    /// this request wants in another way.
    private func common(
        with group: GroupDocument
    ) async throws -> (shared: [TaskDocument], keys: Set<String>, dropped: [TaskDocument]) {
        var unfinished: [String: TaskDocument] = [:]
        for state in TaskState.allCases where !state.isTerminal {
            for task in try await Page.all({
                try await patient.tasks(of: group.name, state: state, after: $0, limit: Limits.pageSize)
            }) {
                unfinished[task.path] = task
            }
        }
        let isAlike =
            group.policy == transfers.policy
            && group.fetchOptions?.contains("decode") ?? false == (transfers.fetch?.decode == true)
        var (shared, dropped): ([TaskDocument], [TaskDocument]) = ([], [])
        var keys: Set<String> = []
        try tasks.visit { task, fetch in
            guard let other = unfinished.removeValue(forKey: task.path.string) else { return }
            let wanted = Definition(task, fetch: fetch)
            // A task of an earlier run of this request without any bytes is added to the group of this run.
            let isShared =
                isAlike && wanted != nil && wanted == Definition(other) && (!isOwn(group) || other.bytes.done > 0)
            if isShared {
                shared.append(other)
                keys.insert(task.key)
            } else {
                dropped.append(other)
            }
        }
        return (shared, keys, dropped)
    }

    /// Calls `body` with the keys of tasks, as many at a time as a request may name.
    func inPages(_ keys: [String], _ body: ([String]) async throws -> Void) async throws {
        for first in stride(from: 0, to: keys.count, by: Limits.pageSize) {
            try await body(Array(keys[first..<min(keys.count, first + Limits.pageSize)]))
        }
    }
}

/// What a task asks for, as far as a coordinator shows it.
struct Definition: Hashable {
    private let path: String
    private let urls: [String]
    private let size: Int64?
    private let priority: Int32
    private let digests: [String: String]
    private let contentType: String?

    /// What an existing task asks for; `nil` if it has options or a deadline, which can't be compared.
    init?(_ task: TaskDocument) {
        guard task.fetchOptions == nil, task.deadlineAt == nil else { return nil }
        path = task.path
        urls = task.urls
        size = task.size
        priority = task.priority
        digests = task.digests
        contentType = task.contentType
    }

    /// What a new task asks for; `nil` if it has header fields, options or a deadline, since a coordinator does not show all of these.
    init?(_ task: TaskSpecification, fetch: FetchOptions?) {
        guard task.headers.isEmpty, task.deadline == nil, fetch == nil else { return nil }
        path = task.path.string
        urls = task.sources.map(\.string)
        size = task.size
        priority = task.priority
        digests = Dictionary(task.digests.map { ($0.algorithm.rawValue, $0.hexadecimal) }) { first, _ in first }
        contentType = task.contentType
    }
}
