import MusterAPI
import MusterCore
import MusterStore

extension GroupDocument {
    /// A group as it is shown. Progress comes from the store's counters.
    ///
    /// - Parameters:
    ///   - etaSeconds: the estimate of its end, which needs more than its record: see `GroupProgress`.
    ///   - own: what the coordinator's own process knows.
    init(_ record: GroupRecord, etaSeconds: Int64?, own: OwnProcess) throws {
        let row = "group \(record.name)"
        self.init(name: record.name, state: record.state, sink: record.sink, createdAt: record.createdAt)
        generation = record.generation
        priority = record.priority
        weight = record.weight
        limits = GroupLimits(record)
        deadlineAt = record.deadlineAt
        onDeadline = record.deadlineAt == nil ? nil : record.deadlineAction
        self.overdue = record.isOverdue
        after = record.prerequisites.isEmpty ? nil : record.prerequisites.map(PrerequisiteDocument.init)
        metadata = try StoredJSON.document(JSONValue.self, ifAny: record.metadata, column: "groups.metadata", of: row)
        tasks = TaskCounts(record.tasks)
        bytes = Bytes(
            done: record.bytesDone, total: max(record.bytesTotal, record.bytesDone), unknownTasks: record.unknownTasks)
        bytesPerSecond = Self.mayCome(record) ? record.bytesPerSecond : 0
        self.etaSeconds = etaSeconds
        finishedAt = record.finishedAt
        self.notes = Self.notes(record, own)
        self.policy = try Self.policy(record)
        resolver = try StoredJSON.document(Resolver.self, ifAny: record.resolver, column: "groups.resolver", of: row)
            .map(ResolverDocument.init)
        fetchOptions = record.optionNames.isEmpty ? nil : record.optionNames
        changedTasks = record.changedTasks
        removing = record.isRemoving ? true : nil
    }

    /// Whether bytes arrive now. The speed alone does not tell: it decays for a while after the last byte.
    private static func mayCome(_ record: GroupRecord) -> Bool {
        [TaskState.active, .finalizing].contains { record.tasks[$0, default: 0] > 0 }
    }

    /// The policy with every stored part of it.
    private static func policy(_ record: GroupRecord) throws -> TransferPolicy? {
        var policy = try TransferPolicy(storedFor: record)
        if !record.reuses {
            policy = policy ?? TransferPolicy()
            policy?.reuse = false
        }
        return policy
    }
}

extension TransferPolicy {
    /// A group's stored policy as a value of the API; `nil` when it has none.
    init?(storedFor record: GroupRecord) throws {
        let stored = try StoredJSON.document(
            TransferPolicy.self, ifAny: record.policy, column: "groups.policy", of: "group \(record.name)")
        guard let stored else { return nil }
        self = stored
    }
}

extension GroupDocument {
    /// The notes: what keeps the group from going on, and other facts about it.
    private static func notes(_ record: GroupRecord, _ own: OwnProcess) -> [String] {
        if record.isRemoving { return ["it is being removed"] }
        if record.isCancelling { return ["it is being cancelled"] }
        guard !record.state.isTerminal else { return [withoutFailures(record)].compactMap { $0 } }
        let waits = [
            held(record), hours(record), window(record), rate(record), overdue(record), workers(record, own),
            origins(record),
        ]
        return waits.compactMap { $0 } + members(record)
    }

    /// A note that the tasks for which the group failed were removed. The event of its end still says what was true then.
    private static func withoutFailures(_ record: GroupRecord) -> String? {
        guard record.state == .failed, !record.isOverdue, record.tasks[.failed, default: 0] == 0 else { return nil }
        return "what had failed of it was removed; it completes without that by: muster retry \(ShellWord(record.name))"
    }

    private static func held(_ record: GroupRecord) -> String? {
        let open = record.prerequisites.filter { !$0.isSatisfied }
        guard record.isHeld, !open.isEmpty else { return nil }
        let lost = (open.first { $0.state.isTerminal } ?? record.lost).map { other in
            ", and \"\(other.group)\" has \(GroupExplanation.ending(other.state)) already: muster explain \(ShellWord(record.name))"
        }
        return "it waits for \(WaitSentence.groups(open.map(\.group)))\(lost ?? "")"
    }

    private static func hours(_ record: GroupRecord) -> String? {
        if record.hasFlawedHours { return "it does not run, since its hours can't be read: give it others" }
        let isUnread = record.timetable != nil && GroupLimits(record).timetable == nil
        return isUnread ? "its timetable can't be read, and its hours can't be told: give it another one" : nil
    }

    private static func window(_ record: GroupRecord) -> String? {
        guard !record.isWindowOpen, !record.hasFlawedHours, let window = record.window else { return nil }
        let next = record.windowOpensAt.map { "; it goes on at \($0)" } ?? ""
        return "it runs only from \(window.from) to \(window.to) (\(window.timeZone))\(next)"
    }

    private static func rate(_ record: GroupRecord) -> String? {
        record.bytesPerSecondAllowed.map { "it is limited to \(ByteCount(bytes: $0))/s now" }
    }

    private static func overdue(_ record: GroupRecord) -> String? {
        guard record.isOverdue, let deadline = record.deadlineAt else { return nil }
        switch record.deadlineAction {
        case .fail: return "its deadline was \(deadline); what isn't finished fails"
        case .continue: return "it is overdue since \(deadline), and goes on"
        }
    }

    private static func workers(_ record: GroupRecord, _ own: OwnProcess) -> String? {
        guard unfinished(record) > 0 else { return nil }
        if record.workersReaching == 0 {
            let workers = own.workers(record.sink)
            return workers == .passing ? nil : WaitSentence.noWorker(sink: record.sink, own: workers)
        }
        if let silence = WaitSentence.silence(own.silent(record), at: record.at) { return silence }
        let parked = record.workersParked
        guard parked > 0 else { return nil }
        let place = record.isSinkParked ? "every worker" : parked == 1 ? "1 worker" : "\(parked) workers"
        let trouble = WaitSentence.sinkInTrouble(record.sink, at: place, record.parkedDetail)
        return own.waitsForSinks ? "\(trouble); it goes on by itself when that is over" : trouble
    }

    private static func origins(_ record: GroupRecord) -> String? {
        guard let first = record.pausedOrigins.first, let until = record.originsPausedUntil else { return nil }
        let count = record.pausedOrigins.count
        let sooner = WaitSentence.sooner(first, until: until, isTried: record.areOriginsTried, at: record.at)
        let end = record.areOriginsTried ? WaitSentence.tried : sooner
        return
            (count == 1
            ? "the origin \(first) is paused until \(until)"
            : "\(count) of its origins are paused; \(first) goes on at \(until)") + (end.map { "; \($0)" } ?? "")
    }

    private static func members(_ record: GroupRecord) -> [String] {
        var notes: [String] = []
        let paused = record.tasks[.paused] ?? 0
        if paused > 0 {
            let tasks = paused == 1 ? "1 paused task holds" : "\(paused) paused tasks hold"
            notes.append("\(tasks) it open; go on with: muster resume \(ShellWord(record.name))")
        }
        if record.state == .open, unfinished(record) == 0, paused == 0 {
            notes.append("it is open for more tasks; complete it with: muster seal \(ShellWord(record.name))")
        }
        return notes
    }

    private static func unfinished(_ record: GroupRecord) -> Int64 {
        [TaskState.queued, .active, .finalizing].reduce(0) { $0 + (record.tasks[$1] ?? 0) }
    }
}

extension GroupLimits {
    /// The limits of a group as they were set. A timetable that can't be read is left out, so that it keeps no other group from being shown
    /// (I19); a note tells of it.
    init(_ record: GroupRecord) {
        self.init(
            maxConnections: record.maxConnections, bytesPerSecond: record.bytesPerSecondLimit,
            between: record.window,
            timetable: record.hasFlawedHours
                ? nil
                : try? StoredJSON.document(
                    [TimetableEntry].self, ifAny: record.timetable, column: "groups.timetable",
                    of: "group \(record.name)"))
    }
}

extension PrerequisiteDocument {
    /// A prerequisite as it is shown.
    init(_ record: PrerequisiteRecord) {
        self.init(group: record.group, on: record.on, satisfied: record.isSatisfied)
    }
}

extension GroupDocument.TaskCounts {
    /// Counts by state. Cancelled tasks are not in the total.
    fileprivate init(_ counts: [TaskState: Int64]) {
        func count(_ state: TaskState) -> Int64 { counts[state] ?? 0 }
        self.init(
            total: counts.reduce(0) { $0 + ($1.key == .cancelled ? 0 : $1.value) }, queued: count(.queued),
            active: count(.active), paused: count(.paused), finalizing: count(.finalizing),
            succeeded: count(.succeeded),
            failed: count(.failed), cancelled: count(.cancelled))
    }
}
