import MusterAPI
import MusterCore

/// What becomes of the unfinished requests of a directory when another one is made there.
extension GetSession {
    /// Stands in a group of `get` for how its sources are asked, which is never read back.
    var settingsMark: JSONValue {
        var identity = RequestIdentity()
        identity.add(transfers.fetch, transfers.resolver)
        return .object(["settings": .string(identity.text)])
    }

    /// Has the sources of a group asked as this request says. The bytes that it has stay: validators prove them, not those who asked.
    func askAsWanted(_ group: GroupDocument) async throws {
        guard group.metadata != settingsMark else { return }
        let patch = GroupPatch(
            fetch: transfers.fetch.map { .set($0) } ?? .clear, resolver: transfers.resolver.map { .set($0) } ?? .clear,
            metadata: .set(settingsMark))
        _ = try await patient.change(group: group.name, patch)
    }

    /// Other requests of this directory wait: this one was asked for now. So does an earlier run of this one where each asks for all of it anew.
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

    /// Where each run asks for all of it anew, what failed in the one before goes on if some of it has come.
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

    /// Forgets what earlier groups of this request know and the last one knows better. What only they have finished or begun stays: its files can be
    /// asked about, and gone on with.
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

    /// What an unfinished request of this directory has begun, and this one wants alike.
    struct Held {
        /// Its group.
        fileprivate let group: GroupDocument
        /// The files, as that has them.
        fileprivate let tasks: [TaskDocument]
        /// Their keys in this request.
        fileprivate let keys: Set<String>
    }

    /// Frees the paths of this request that unfinished ones of this directory hold and it wants otherwise: these are dropped there, since it
    /// was made later. All else of them stays, paused.
    ///
    /// - Returns: what both want alike; `nil` where there is no unfinished request.
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

    /// The keys of this request, or of those that are chosen of it, but for what an unfinished one has begun.
    func ownKeys(among chosen: Set<String>?, without held: [Held]) throws -> Set<String> {
        guard !held.isEmpty else { return [] }
        var keys: Set<String> = []
        try tasks.visit { task, _ in
            if chosen?.contains(task.key) != false { keys.insert(task.key) }
        }
        for part in held { keys.subtract(part.keys) }
        return keys
    }

    /// Has the request that has begun some files bring them, with the bytes that they have.
    ///
    /// - Parameter name: the group of what this request alone wants; there is none if that is nothing.
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

    /// What a group has not finished yet of the paths of this request: what both want alike, with its keys here, and what this one wants
    /// otherwise.
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
            // What an earlier run of this request has not begun is asked for here.
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

    /// Does something with the keys of tasks, as many at a time as a request may name.
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

    /// What an unfinished task asks for; `nil` where more belongs to it than is shown.
    init?(_ task: TaskDocument) {
        guard task.fetchOptions == nil, task.deadlineAt == nil else { return nil }
        path = task.path
        urls = task.urls
        size = task.size
        priority = task.priority
        digests = task.digests
        contentType = task.contentType
    }

    /// What a new task asks for; `nil` where a coordinator would not show all of that.
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
