import MusterAPI
import MusterCore

/// Brings tasks into a group, which is created if it is missing.
struct Submission {
    /// The result of a submission.
    struct Result: Sendable {
        /// The group afterwards.
        var group: GroupDocument
        /// Tasks that are new.
        var added: Int64
        /// Tasks that were there already.
        var existing: Int64
        /// Whether the group is new.
        var isCreated: Bool
    }

    /// The coordinator.
    let client: MusterClient
    /// The group's name.
    let group: String
    /// Its sink; the group's own, or the default one, when absent.
    let sink: String?
    /// What a new group may use and when, and what it waits for.
    let wishes: GroupPatch
    /// How its files are to be fetched.
    let transfers: TransferSettings
    /// Whether it is sealed afterwards.
    var seals: Bool
    /// Whether it is opened again if it is sealed or finished.
    let reopens: Bool
    /// The tasks.
    let tasks: TaskList
    /// The keys of the tasks to submit; all when absent.
    var chosen: Set<String>?
    /// Metadata that the coordinator keeps with a new group for the caller.
    var metadata: JSONValue?

    /// Submits everything or nothing: a group that this call created is removed again if its tasks are refused. If no coordinator answers any more,
    /// the group stays, and the next call goes on with it.
    ///
    /// - Throws: `Problem` with the manifest's line where it is known; `CommandFailure`.
    func submit(_ survey: TaskList.Survey) async throws -> Result {
        var request = GroupRequest(name: group, sink: sink, sealed: false)
        wishes.apply(to: &request)
        transfers.apply(to: &request)
        request.metadata = metadata
        guard survey.isSmall else {
            let isNew = try await create(request)
            return try await add(isNew: isNew) {
                try await client.addTasks(
                    streaming: { [tasks, chosen] in tasks.stream(chosen: chosen) }, to: group, reopen: reopens)
            }
        }
        let items = try tasks.items(chosen: chosen)
        do {
            return try await createWhole(request, items)
        } catch let problem as Problem where problem.code == .groupExists {
            return try await add(isNew: false) {
                if items.isEmpty, reopens {
                    _ = try await client.reopen(group: group)
                    return AddedDocument(added: 0, existing: 0)
                }
                do {
                    return try await client.addTasks(items.map(\.request), to: group, reopen: reopens)
                } catch let problem as Problem {
                    throw Self.located(problem, prefix: "/", items)
                }
            }
        } catch let problem as Problem {
            throw Self.located(problem, prefix: "/tasks/", items)
        }
    }

    /// Creates the group and its tasks in one request.
    private func createWhole(_ request: GroupRequest, _ items: [TaskList.Item]) async throws -> Result {
        var request = request
        request.sealed = seals
        request.tasks = items.map(\.request)
        let document = try await client.createGroup(request)
        let added = min(document.tasks.total, Int64(items.count))
        return Result(group: document, added: added, existing: Int64(items.count) - added, isCreated: true)
    }

    /// Makes the group, open; false if it is there already.
    private func create(_ request: GroupRequest) async throws -> Bool {
        do {
            _ = try await client.createGroup(request)
            return true
        } catch let problem as Problem where problem.code == .groupExists {
            return false
        }
    }

    private func add(isNew: Bool, _ send: () async throws -> AddedDocument) async throws -> Result {
        do {
            if !isNew { try await checkSink() }
            let added = try await send()
            var document = try await client.group(group)
            if seals, !document.sealed { document = try await client.apply(.seal, to: group) }
            return Result(group: document, added: added.added, existing: added.existing, isCreated: isNew)
        } catch {
            // Without an answer, the tasks may have been added: what was acknowledged stays (I10).
            let isUnanswered = error is Unreachable || (error as? Problem)?.status == 503
            if isNew, !isUnanswered {
                do {
                    try await client.removeGroup(group)
                } catch {
                    // The caller must get the refusal of the tasks, not this error. The group that is left is empty and open.
                }
            }
            throw error
        }
    }

    /// A group has one sink for good: tasks that are meant for another one must not end up there.
    private func checkSink() async throws {
        guard let sink else { return }
        let document = try await client.group(group)
        guard document.sink == sink else {
            throw Problem(.conflict, "the group \(group) writes to the sink \(document.sink), not to \(sink)")
        }
    }

    /// The problem with the line of the manifest instead of the index of the task: `/tasks/3/urls/0` is `/urls/0` of a line.
    ///
    /// If the problem names a line, that is the number of the task in the request, counted from 1.
    static func located(_ problem: Problem, prefix: String, _ items: [TaskList.Item]) -> Problem {
        if let line = problem.line {
            var located = problem
            located.line = items.indices.contains(line - 1) ? items[line - 1].line : line
            return located
        }
        guard let pointer = problem.pointer, pointer.hasPrefix(prefix) else { return problem }
        let rest = pointer.dropFirst(prefix.count)
        let digits = rest.prefix { $0 != "/" }
        guard let index = Int(digits), items.indices.contains(index), let line = items[index].line else {
            return problem
        }
        var located = problem
        located.line = line
        located.pointer = rest.count > digits.count ? String(rest.dropFirst(digits.count)) : nil
        return located
    }
}
