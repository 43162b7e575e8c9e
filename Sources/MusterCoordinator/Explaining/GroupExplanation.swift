import MusterAPI
import MusterCore
import MusterStore

/// What a group waits for, in words: a pure function of the facts.
struct GroupExplanation: Sendable {
    /// The facts that the explanation is made from.
    let facts: GroupFacts

    /// What is known besides the group's row.
    var situation: GroupSituation { facts.situation }

    /// The explanation as a document of the API.
    var document: GroupExplanationDocument {
        let waits = waits
        let estimate = GroupEstimate(facts: facts)
        let eta = estimate.document
        var group = facts.group
        group.etaSeconds = eta.seconds
        // While the whole group waits, no origin counts as the slowest, unless the group still has connections there.
        let slowest =
            facts.workers.areAllSilent
            ? nil : estimate.slowest.flatMap { whole == nil || $0.connections > 0 ? $0 : nil }
        return GroupExplanationDocument(
            group: group, summary: summary(waits), next: next(waits), waits: waits,
            slowestOrigin: slowest.map {
                .init(
                    key: $0.origin.key, leases: $0.connections, allowed: $0.origin.allowedConnections,
                    bytesPerSecond: $0.bytesPerSecond, bytesLeft: $0.bytesLeftInAll)
            },
            criticalPath: CriticalPath(facts: facts, slowest: slowest).sentences, eta: eta,
            doubtful: situation.doubtful, at: situation.at)
    }

    /// What keeps tasks of the group from going on, in this order: what stands in the way of all of them, what is being
    /// done, what ends by itself, and what ends when other transfers end.
    var waits: [GroupExplanationDocument.Wait] {
        guard !facts.group.state.isTerminal else { return [] }
        let work = [fetching, finalizing, asking].compactMap { $0 }
        if let whole { return [whole] + work + [pausedMembers, unsealed].compactMap { $0 } }
        var waits = [noWorker, sinkParked].compactMap { $0 } + work
        waits +=
            [pausedMembers].compactMap { $0 } + rateLimits
            + [noRoom, sameFile, backoff, originPaused].compactMap { $0 }
        // Where the rate is used up, more connections would bring nothing more.
        if rateLimits.isEmpty { waits += [groupFull, originFull].compactMap { $0 } }
        if ready.number > 0, waits.allSatisfy({ $0.reason == .paused }) {
            waits.append(workersBusy(ready))
        } else if rateLimits.isEmpty, groupFull == nil, facts.workers.freeSlots == 0, elsewhere.number > 0,
            situation.origins.count > 1
        {
            waits.append(workersBusy(elsewhere))
        }
        return waits + [unsealed].compactMap { $0 }
    }

    private typealias Wait = GroupExplanationDocument.Wait

    /// The wait that concerns the whole group.
    private var whole: Wait? { paused ?? held ?? closed }

    private var ready: GroupFacts.Count { total(situation.origins.map(\.ready), more: facts.hasMoreOrigins) }

    private func total(_ counts: [GroupFacts.Count], more: Bool = false) -> GroupFacts.Count {
        counts.reduce(GroupFacts.Count(number: 0, more: more)) { sum, count in
            GroupFacts.Count(number: sum.number + count.number, more: sum.more || count.more)
        }
    }

    /// A wait of chunks. It counts no more tasks than are unfinished, since a task may have many chunks.
    private func wait(
        _ reason: ExplanationDocument.Reason, _ detail: String, _ chunks: GroupFacts.Count, until: Timestamp? = nil
    ) -> Wait {
        let tasks = min(chunks.number, facts.unfinished)
        return Wait(
            reason: reason, detail: detail, tasks: tasks, more: chunks.more && tasks < facts.unfinished, until: until)
    }

    private var paused: Wait? {
        guard facts.isPaused else { return nil }
        return Wait(
            reason: .paused, detail: WaitSentence.paused(group: facts.group.name), tasks: facts.unfinished)
    }

    private var held: Wait? {
        guard !facts.prerequisites.isEmpty else { return nil }
        let help =
            if let lost = facts.prerequisites.first(where: \.state.isTerminal) {
                "; \"\(lost.group)\" has \(Self.ending(lost.state)) already, so that only a change helps"
            } else if let lost = situation.lost.first {
                "; at the end of that chain \"\(lost.group)\" has \(Self.ending(lost.state)): \(Self.remedy(lost))"
            } else {
                ""
            }
        return Wait(
            reason: .prerequisites,
            detail: "it waits for \(WaitSentence.groups(facts.prerequisites.map(\.group)))\(help)",
            tasks: facts.unfinished)
    }

    /// The command that helps a group that waits in vain for another group. A retry leaves cancelled tasks as they are, and
    /// a group that another group waits for can't be removed: only new tasks begin its next generation.
    static func remedy(_ other: PrerequisiteRecord) -> String {
        let name = ShellWord(other.group)
        return other.state == .cancelled ? "muster add \(name) --reopen … with new tasks" : "muster retry \(name)"
    }

    /// How a group has ended, after "has".
    static func ending(_ state: GroupState) -> String {
        switch state {
        case .cancelled: "been cancelled"
        case .failed: "failed"
        case .succeeded: "succeeded"
        case .open, .sealed: "not ended"
        }
    }

    private var closed: Wait? {
        guard case .closed(let until) = facts.window, facts.group.tasks.queued + facts.group.tasks.active > 0 else {
            return nil
        }
        let window = facts.group.limits.between.map { " from \($0.from) to \($0.to) (\($0.timeZone))" } ?? ""
        return Wait(
            reason: .windowClosed, detail: "it may run only\(window), which is not now",
            tasks: facts.group.tasks.queued + facts.group.tasks.active, until: until)
    }

    private var noWorker: Wait? {
        let tasks = facts.unfinished - facts.group.tasks.paused
        guard tasks > 0 else { return nil }
        if facts.workers.reaching == 0 {
            let detail = WaitSentence.noWorker(sink: facts.group.sink, own: facts.workers.own)
            return Wait(reason: .noWorker, detail: detail, tasks: tasks)
        }
        // Silent workers that hold its leases are named with their work.
        guard facts.workers.areAllSilent, facts.group.tasks.active == 0, situation.leases.finalizing == 0 else {
            return nil
        }
        return silence.map { Wait(reason: .noWorker, detail: $0, tasks: tasks) }
    }

    private var sinkParked: Wait? {
        guard facts.workers.isSinkParked, facts.unfinished > facts.group.tasks.paused else { return nil }
        return Wait(
            reason: .sinkParked,
            detail: WaitSentence.sinkInTrouble(facts.group.sink, facts.workers.parkedDetail),
            tasks: facts.unfinished - facts.group.tasks.paused)
    }

    private var silence: String? { WaitSentence.silence(facts.workers.silent, at: situation.at) }
    private var silenceAfter: String { silence.map { "; \($0)" } ?? "" }

    private var fetching: Wait? {
        let tasks = facts.group.tasks.active
        guard tasks > 0 else { return nil }
        let connections =
            situation.leases.connections == 1 ? "one connection" : "\(situation.leases.connections) connections"
        return Wait(
            reason: .fetching,
            detail: "\(Self.counted(tasks)) being fetched over \(connections), "
                + "\(ByteCount(bytes: facts.group.bytesPerSecond))/s lately\(silenceAfter)\(nothingComes)",
            tasks: tasks)
    }

    /// Names the chunk of which nothing has come since it was requested, if that is long ago.
    private var nothingComes: String {
        guard let last = facts.straggler, last.bytesPerSecond == 0, silence == nil,
            let time = WaitSentence.nothingCame(since: last.grantedAt, at: situation.at)
        else { return "" }
        return "; \(time) of \(last.key) from \(last.origin)"
    }

    private var finalizing: Wait? {
        let tasks = facts.group.tasks.finalizing
        guard tasks > 0 else { return nil }
        return Wait(
            reason: .finalizing,
            detail: situation.leases.finalizing > 0
                ? "\(Self.counted(tasks)) being verified and put in place"
                    + (facts.group.tasks.active > 0 ? "" : silenceAfter)
                : "\(Self.counted(tasks)) fetched and wait\(tasks == 1 ? "s" : "") to be verified and put in place",
            tasks: tasks)
    }

    private var asking: Wait? {
        let tasks = situation.leases.asking + situation.putOff.asking
        guard tasks > 0 else { return nil }
        let whose = tasks == 1 ? "one task has expired" : "\(tasks) tasks have expired"
        return Wait(
            reason: .resolver, detail: "the URL of \(whose), and the resolver is asked for a fresh one", tasks: tasks)
    }

    private var pausedMembers: Wait? {
        let tasks = facts.group.tasks.paused
        guard tasks > 0, !facts.isPaused else { return nil }
        return Wait(
            reason: .paused,
            detail: "\(Self.counted(tasks)) paused and hold\(tasks == 1 ? "s" : "") the group open; "
                + "go on with: muster resume \(ShellWord(facts.group.name))",
            tasks: tasks)
    }

    /// Every cap on bytes per second that is used up: the group's own, those of its origins, and the fleet's.
    private var rateLimits: [Wait] {
        guard ready.number + facts.group.tasks.active > 0 else { return [] }
        let tasks = facts.group.tasks.queued + facts.group.tasks.active
        var details: [String] = []
        if let rate = facts.bytesPerSecondAllowed, GroupFacts.isUsedUp(rate, by: facts.group.bytesPerSecond),
            !waitsForRoom
        {
            details.append("the group uses all of the \(ByteCount(bytes: rate))/s that it may have")
        }
        let origins = situation.origins.map(\.origin).compactMap { origin in
            origin.bytesPerSecondLimit.flatMap { rate in
                GroupFacts.isUsedUp(rate, by: origin.bytesPerSecond) ? (key: origin.key, rate: rate) : nil
            }
        }
        if origins.count == 1 {
            let rate = ByteCount(bytes: origins[0].rate)
            details.append("all of the \(rate)/s that may come from \(origins[0].key) are used")
        } else if !origins.isEmpty {
            details.append("all that may come from \(origins.count) of its origins is used")
        }
        if let fleet = situation.fleet, GroupFacts.isUsedUp(fleet.bytesPerSecondLimit, by: fleet.bytesPerSecond) {
            let rate = ByteCount(bytes: fleet.bytesPerSecondLimit)
            details.append("the whole fleet uses all of the \(rate)/s that it may have")
        }
        return details.map { Wait(reason: .rateLimited, detail: $0, tasks: tasks) }
    }

    /// Whether nothing comes for the group since others have all slots or connections: then its own rate is not what it waits for.
    private var waitsForRoom: Bool {
        situation.leases.connections == 0 && facts.group.bytesPerSecond == 0
            && (facts.workers.freeSlots == 0 || !fullOrigins.isEmpty)
    }

    private var noRoom: Wait? {
        let tasks = situation.roomless.tasks
        guard tasks > 0 else { return nil }
        let files = tasks == 1 ? "one file finds" : "\(tasks) files find"
        let named = Self.named(situation.roomless.first.map { (key: $0.key, reason: $0.detail ?? "") }, of: tasks)
        return Wait(
            reason: .backoff,
            detail:
                "\(files) no room in the sink \"\(facts.group.sink)\"\(named); make room there: "
                + "\(tasks == 1 ? "it" : "each") is tried again by itself",
            tasks: tasks)
    }

    private var sameFile: Wait? {
        let tasks = situation.putOff.awaiting
        guard tasks > 0, let awaited = situation.putOff.awaited else { return nil }
        return wait(
            .sameFile,
            tasks == 1
                ? "the same is being fetched for \"\(awaited.key)\" of the group \"\(awaited.group)\""
                : "the same is being fetched for other tasks, such as \"\(awaited.key)\" of the group \"\(awaited.group)\"",
            GroupFacts.Count(number: tasks, more: facts.putOff.more))
    }

    private var backoff: Wait? {
        var chunks = facts.putOff
        chunks.number -= situation.putOff.awaiting
        guard chunks.number > 0 else { return nil }
        let failure = situation.retried.flatMap { retried in
            retried.failure.kind?.text(
                status: retried.failure.status, source: retried.origin, detail: "", isDecided: false)
        }
        return wait(
            .backoff,
            "a try of \(Self.number(chunks)) failed\(failure.map { " (\(chunks.number > 1 ? "one of them with: " : "")\($0))" } ?? ""), and the next one is not due yet",
            chunks,
            until: situation.putOff.dueAt)
    }

    private var originPaused: Wait? {
        let origins = situation.origins.filter { $0.origin.pausedUntil != nil && $0.readyChunks > 0 }
        guard let until = origins.compactMap(\.origin.pausedUntil).min() else { return nil }
        let what = origins.count == 1 ? "the origin \(origins[0].origin.key) is" : "\(origins.count) of its origins are"
        let tried = origins.contains(where: \.origin.isTried) ? "; \(WaitSentence.tried)" : ""
        return wait(.originPaused, "\(what) paused\(tried)", total(origins.map(\.ready)), until: until)
    }

    private var groupFull: Wait? {
        guard let cap = facts.group.limits.maxConnections, situation.leases.connections >= Int64(cap), ready.number > 0
        else {
            return nil
        }
        // A lowered cap does not end running transfers at once.
        let detail =
            situation.leases.connections == Int64(cap)
            ? WaitSentence.groupFull(cap)
            : "the group has \(situation.leases.connections) connections, more than the \(cap) that it may have now"
        return wait(.groupFull, detail, ready)
    }

    /// What could be fetched from origins that may have more connections.
    private var elsewhere: GroupFacts.Count { total(situation.origins.filter { $0.hasRoom == true }.map(\.ready)) }

    private var fullOrigins: [GroupSituation.Origin] {
        situation.origins.filter { $0.readyChunks > 0 && $0.hasRoom == false }
    }

    /// The more urgent groups that leave it no connection to its full origins.
    var urgent: UrgentGroups? { UrgentGroups(at: fullOrigins.map(\.origin.key), in: situation.urgent) }

    /// The more urgent groups that come first, while all workers are busy.
    var urgentForSlots: UrgentGroups? { facts.workers.freeSlots == 0 ? situation.urgentForSlots : nil }

    private var originFull: Wait? {
        let origins = fullOrigins
        guard !origins.isEmpty else { return nil }
        let full =
            origins.count == 1
            ? WaitSentence.originFull(origins[0].origin) : WaitSentence.originsFull(origins.map(\.origin))
        let detail = [full, urgent.map(WaitSentence.urgent)].compactMap { $0 }.joined(separator: "; ")
        return wait(.originFull, detail, total(origins.map(\.ready)))
    }

    private func workersBusy(_ ready: GroupFacts.Count) -> Wait {
        let detail =
            facts.workers.freeSlots > 0
            ? "\(Self.number(ready)) can be fetched as soon as it is the group's turn"
            : WaitSentence.workersBusy(sink: facts.group.sink, behind: urgentForSlots)
        return wait(.workersBusy, detail, ready)
    }

    private var unsealed: Wait? {
        guard facts.group.state == .open else { return nil }
        return Wait(
            reason: .unsealed,
            detail: "it is open for more tasks, and ends only when it is sealed: "
                + "muster seal \(ShellWord(facts.group.name))",
            tasks: facts.unfinished)
    }
}

extension GroupExplanation {
    /// `one task is`, or `7 tasks are`.
    static func counted(_ tasks: Int64) -> String { tasks == 1 ? "one task is" : "\(tasks) tasks are" }

    /// `one chunk`, `7 chunks`, or `more than 100 chunks`.
    static func number(_ count: GroupFacts.Count) -> String {
        let chunks = count.number == 1 ? "one chunk" : "\(count.number) chunks"
        return count.more ? "more than \(chunks)" : chunks
    }
}
