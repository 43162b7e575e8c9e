import MusterAPI
import MusterCore

/// What becomes of the unfinished requests of a directory when another one is made there.
extension GetSession {
    /// Stands in a group of `get` for the options that it was made with: a request with other ones goes on with none of its tasks.
    var settingsMark: JSONValue {
        var identity = RequestIdentity()
        identity.add(transfers)
        return .object(["settings": .string(identity.text)])
    }

    /// Other requests of this directory wait: this one was asked for now.
    func pauseOthers() async throws {
        for group in try await otherUnfinished() { _ = try await client.apply(.pause, to: group.name) }
    }

    private func otherUnfinished() async throws -> [GroupDocument] {
        let own = Self.prefix + survey.identity.text
        return try await StatusCommand.groups(client).filter { !$0.state.isTerminal && !$0.name.hasPrefix(own) }
    }

    /// Frees the paths of this request that unfinished ones of this directory hold. Of what both want, those that have begun it bring the
    /// files first, with the bytes that they have; all else of them is dropped, since this request was made later.
    ///
    /// - Returns: whether there was an unfinished request.
    func yieldPaths() async throws -> Bool {
        let others = try await otherUnfinished()
        for group in others {
            let isAlike = group.metadata == settingsMark
            let (shared, dropped) = isAlike ? try await keepShared(of: group) : (0, 0)
            guard shared > 0 else {
                try await client.removeGroup(group.name, files: .keep)
                let why = isAlike ? "" : ", which has other options: \(ByteCount(bytes: group.bytes.done)) had come"
                context.console.remark("dropped an unfinished request for the same files\(why)")
                continue
            }
            let files = { $0 == 1 ? "a file" : "\($0) files" }
            context.console.remark(
                "going on with \(files(shared)) of an unfinished request"
                    + (dropped > 0 ? "; dropped \(files(dropped)) of it that this one does not want" : ""))
            if group.state == .open { _ = try await client.apply(.seal, to: group.name) }
            let start = try await watcher("").lastPosition()
            let since = try await client.groupExplanation(of: group.name).at
            _ = try await client.apply(.resume, to: group.name)
            try await awaitWorker()
            _ = try await wait(group.name, after: start, since: since)
        }
        return !others.isEmpty
    }

    /// Removes the unfinished tasks of a group that are no part of this request, if some are. Returns how many are, and how many were removed.
    private func keepShared(of group: GroupDocument) async throws -> (shared: Int, dropped: Int) {
        var unfinished: [String: Definition] = [:]
        for state in TaskState.allCases where !state.isTerminal {
            for task in try await Page.all({
                try await client.tasks(of: group.name, state: state, after: $0, limit: Limits.pageSize)
            }) {
                unfinished[task.key] = Definition(task)
            }
        }
        var shared = 0
        try tasks.visit { task, fetch in
            guard let wanted = Definition(task, fetch: fetch), unfinished[task.key] == wanted else { return }
            unfinished[task.key] = nil
            shared += 1
        }
        guard shared > 0 else { return (0, 0) }
        let unwanted = Array(unfinished.keys)
        for first in stride(from: 0, to: unwanted.count, by: Limits.pageSize) {
            let some = unwanted[first..<min(unwanted.count, first + Limits.pageSize)]
            _ = try await client.removeTasks(Array(some), of: group.name)
        }
        return (shared, unwanted.count)
    }
}

/// What a task asks for, as far as a coordinator shows it.
private struct Definition: Hashable {
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
