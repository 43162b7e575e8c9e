import MusterAPI
import MusterCore
import MusterStore

/// Why a task is not done, in words: a pure function of the facts.
struct Explanation: Sendable {
    /// The facts that the explanation is made from.
    let facts: TaskFacts

    private var situation: TaskSituation { facts.situation }

    /// The explanation as a document of the API.
    var document: ExplanationDocument {
        let waits = waits
        var document = ExplanationDocument(
            task: facts.task, group: facts.group, summary: summary(waits), waits: waits, chunks: situation.chunks)
        document.next = next(waits)
        document.work = situation.work
        document.sources = situation.sources
        document.attempts = situation.attempts
        document.doubtful = situation.isDoubtful ? true : nil
        document.deadlineAt = facts.task.state.isTerminal ? nil : facts.task.deadlineAt
        document.at = situation.at
        return document
    }

    /// What keeps the task from going on, in this order: what holds all of it (a pause, prerequisites, the window), what is
    /// being done, what is missing (a worker, the sink, a URL), what ends by itself, and what ends when other transfers end.
    var waits: [ExplanationDocument.Wait] {
        guard !facts.task.state.isTerminal else { return [] }
        var waits = [fetching, finalizing].compactMap { $0 }
        // What is fetched already is put in place at any time.
        if facts.task.state != .finalizing, let whole = paused ?? held ?? closed { return [whole] + waits }
        // The rest is about chunks without a lease.
        guard situation.chunks.ready + situation.chunks.waiting > 0 else { return waits + [asking].compactMap { $0 } }
        waits += [noWorker, sinkParked, asking].compactMap { $0 }
        if situation.chunks.waiting > 0 { waits += [sameFile, backoff].compactMap { $0 } }
        // Putting a file in place needs no connection.
        if situation.chunks.ready > 0, facts.task.state != .finalizing {
            // Where the rate is used up, more connections would bring nothing more.
            waits +=
                [originPaused].compactMap { $0 }
                + (rateLimited.map { [$0] } ?? [groupFull, originFull].compactMap { $0 })
        }
        if waits.isEmpty { waits.append(workersBusy) }
        return waits
    }

    private typealias Wait = ExplanationDocument.Wait

    private var paused: Wait? {
        guard facts.isGroupPaused || facts.task.state == .paused else { return nil }
        return facts.isGroupPaused
            ? Wait(reason: .paused, detail: WaitSentence.paused(group: facts.group))
            : Wait(
                reason: .paused,
                detail: "it is paused; go on with: "
                    + "muster resume \(ShellWord(facts.group)) \(ShellWord(facts.task.key))")
    }

    private var held: Wait? {
        guard !facts.prerequisites.isEmpty else { return nil }
        return Wait(
            reason: .prerequisites, detail: "its group waits for \(WaitSentence.groups(facts.prerequisites))")
    }

    private var closed: Wait? {
        guard case .closed(let until) = facts.window else { return nil }
        return Wait(reason: .windowClosed, detail: "its group may not run at this time of day", until: until)
    }

    private var rateLimited: Wait? {
        guard let rate = facts.bytesPerSecondAllowed,
            GroupFacts.isUsedUp(rate, by: facts.groupBytesPerSecond)
        else { return nil }
        return Wait(
            reason: .rateLimited, detail: "its group uses all of the \(ByteCount(bytes: rate))/s that it may have")
    }

    private var transfers: [TaskWork] { situation.work.filter { $0.kind == .fetch } }

    private var fetching: Wait? {
        let fetching = transfers
        guard let since = fetching.map(\.since).min() else { return nil }
        let workers = Set(fetching.map(\.worker))
        let who = workers.count == 1 ? "the worker \(fetching[0].worker) is" : "\(workers.count) workers are"
        let count = fetching.count
        var detail = "\(who) fetching \(count == 1 ? "a chunk" : "\(count) chunks") of it"
        if situation.shrinking > 0 { detail += "; \(Self.chunks(situation.shrinking)) to give the tail to others" }
        return Wait(
            reason: .fetching, detail: join(detail, silence(fetching) ?? nothingComes(fetching)), since: since)
    }

    /// A note that no bytes of these transfers have arrived, if they were requested long ago.
    private func nothingComes(_ fetching: [TaskWork]) -> String? {
        guard fetching.allSatisfy({ $0.durable == $0.start }), let last = fetching.map(\.since).max(),
            WaitSentence.nothingCame(since: last, at: situation.at) != nil
        else { return nil }
        return "nothing of that has come"
    }

    /// A note on the workers that hold this work and have been silent.
    private func silence(_ work: [TaskWork]) -> String? {
        let silent = Dictionary(grouping: work.filter { $0.silentSince != nil }, by: \.worker)
            .map { worker, work in
                SinkWorkers.Silent(
                    name: worker, since: work.compactMap(\.silentSince).min() ?? situation.at,
                    endsAt: work.compactMap(\.endsAt).min(),
                    databaseTrouble: facts.workers.silent.first?.databaseTrouble)
            }
            .sorted { ($0.since, $0.name) < ($1.since, $1.name) }
        return WaitSentence.silence(silent, at: situation.at)
    }

    private func join(_ detail: String, _ silence: String?) -> String {
        [detail, silence].compactMap { $0 }.joined(separator: "; ")
    }

    private static func chunks(_ count: Int) -> String { count == 1 ? "one is" : "\(count) are" }

    private var finalizing: Wait? {
        guard let work = situation.work.first(where: { $0.kind == .finalize }) else { return nil }
        return Wait(
            reason: .finalizing,
            detail: join("the worker \(work.worker) verifies the file and puts it in place", silence([work])),
            since: work.since)
    }

    private var noWorker: Wait? {
        if facts.workers.reaching == 0 {
            return Wait(
                reason: .noWorker, detail: WaitSentence.noWorker(sink: facts.sink, own: facts.workers.own))
        }
        // Silent workers that hold its leases are named with their work.
        guard facts.workers.areAllSilent, situation.work.isEmpty else { return nil }
        return WaitSentence.silence(facts.workers.silent, at: situation.at).map { Wait(reason: .noWorker, detail: $0) }
    }

    private var sinkParked: Wait? {
        guard facts.workers.isSinkParked else { return nil }
        return Wait(
            reason: .sinkParked, detail: WaitSentence.sinkInTrouble(facts.sink, facts.workers.parkedDetail))
    }

    private var asking: Wait? {
        switch situation.question {
        case nil: nil
        case .due(let moment):
            Wait(reason: .resolver, detail: "its URL has expired, and the resolver is to be asked", until: moment)
        case .asked(let worker, let since):
            Wait(
                reason: .resolver, detail: "its URL has expired, and the worker \(worker) is asking the resolver",
                since: since)
        }
    }

    private var sameFile: Wait? {
        guard let awaited = situation.awaited else { return nil }
        return Wait(
            reason: .sameFile,
            detail: "the same is being fetched for \"\(awaited.key)\" of the group \"\(awaited.group)\"")
    }

    private var backoff: Wait? {
        guard let due = situation.dueAt else { return nil }
        let last = situation.attempts.last
        let why =
            last.map {
                $0.kind.text(status: $0.status, source: nil, detail: $0.detail, isDecided: false)
            }.map { "the last try failed: \($0)" } ?? "the last try failed"
        return Wait(reason: .backoff, detail: why, since: last?.at, until: tryAt ?? due)
    }

    /// The time of the next try, from the field that lists of tasks and progress show.
    private var tryAt: Timestamp? { facts.task.retry?.inSeconds.map(moment) }

    private func moment(after seconds: Int64) -> Timestamp {
        Timestamp(microseconds: situation.at.microseconds + seconds * 1_000_000)
    }

    /// Only if every origin is paused: an origin that is not would be used.
    private var originPaused: Wait? {
        let moments = situation.origins.compactMap(\.pausedUntil)
        guard let until = moments.min(), moments.count == situation.origins.count else { return nil }
        let what = situation.origins.count == 1 ? "the origin \(situation.origins[0].key) is" : "all of its origins are"
        let tried = situation.origins.contains(where: \.isTried) ? "; \(WaitSentence.tried)" : ""
        return Wait(reason: .originPaused, detail: "\(what) paused\(tried)", until: until)
    }

    private var groupFull: Wait? {
        guard let cap = facts.groupCap, situation.groupConnections >= Int64(cap) else { return nil }
        return Wait(reason: .groupFull, detail: WaitSentence.groupFull(cap))
    }

    /// The more urgent groups that leave it no connection to its origins.
    private var urgent: UrgentGroups? {
        UrgentGroups(at: situation.origins.filter { $0.pausedUntil == nil }.map(\.key), in: situation.urgent)
    }

    private var originFull: Wait? {
        let open = situation.origins.filter { $0.pausedUntil == nil }
        guard let origin = open.first, open.allSatisfy({ $0.connections >= Int64($0.allowedConnections) }) else {
            return nil
        }
        let full =
            open.count == 1
            ? WaitSentence.originFull(origin)
            : "all of its origins have as many connections as they may have now"
        return Wait(reason: .originFull, detail: join(full, urgent.map(WaitSentence.urgent)))
    }

    private var workersBusy: Wait {
        facts.workers.freeSlots > 0
            ? Wait(reason: .workersBusy, detail: "it is ready, and begun as soon as a connection is free")
            : Wait(
                reason: .workersBusy,
                detail: WaitSentence.workersBusy(sink: facts.sink, behind: situation.urgentForSlots))
    }
}

extension Explanation {
    /// One sentence: what the task waits for, or how it ended.
    private func summary(_ waits: [ExplanationDocument.Wait]) -> String {
        let task = facts.task
        switch task.state {
        case .succeeded:
            let how = task.reusedFrom.map {
                " Nothing was fetched: the origin said that \($0) is still the same, of which it was made."
            }
            guard !situation.isDoubtful else {
                return
                    "It has succeeded: what stands at \(task.path) was taken as the file at try \(task.attempts + 1), "
                    + "and nothing tells whether it is one; a size or a digest would."
            }
            return "It has succeeded: the file stands at \(task.path), whole and verified." + (how ?? "")
        case .cancelled: return "It was cancelled; what was unfinished is dropped."
        case .failed:
            guard let failure = task.failure else { return "It failed." }
            return "It failed: "
                + failure.kind.text(
                    status: failure.status, source: failure.source, detail: failure.detail, isDecided: true)
        case .queued, .active, .paused, .finalizing:
            guard let first = waits.first else { return "It is \(task.state.rawValue)." }
            return first.detail.prefix(1).uppercased() + first.detail.dropFirst() + "."
        }
    }

    /// One sentence: what happens next, and when; and by when it has to be done.
    private func next(_ waits: [ExplanationDocument.Wait]) -> String? {
        if facts.task.state == .failed {
            return "put it back with what it has: muster retry \(ShellWord(facts.group)) \(ShellWord(facts.task.key))"
        }
        guard let first = waits.first else { return nil }
        let parts = [after(first), facts.task.deadlineAt.map { "it fails at \($0) if it is not done by then" }]
        let sentence = parts.compactMap { $0 }.joined(separator: "; ")
        return sentence.isEmpty ? nil : sentence
    }

    /// What happens once a wait is over, and when that is.
    private func after(_ wait: ExplanationDocument.Wait) -> String? {
        let when = (tryAt ?? wait.until).map { " at \($0)" } ?? ""
        switch wait.reason {
        case .paused: return nil
        case .fetching:
            let open = situation.chunks.ready + situation.chunks.waiting
            if open == 0, silence(transfers) == nil, nothingComes(transfers) != nil {
                let tries = facts.task.attempts
                return
                    "a try that nothing comes of is over within minutes, and the file is tried again while it has tries left"
                    + (tries > 0 ? "; \(tries) of its tries \(tries == 1 ? "has" : "have") failed" : "")
            }
            return open > 0
                ? "\(open) more chunk\(open == 1 ? " is" : "s are") fetched as there is room; then the file is verified and put in place"
                : "the file is verified and put in place when its last bytes are there"
                    + (facts.task.etaSeconds.map { ", as things go at \(moment(after: $0))" } ?? "")
        case .finalizing: return "the task succeeds if the bytes are the right ones"
        case .noWorker: return WaitSentence.afterNoWorker(facts.workers)
        case .sinkParked: return WaitSentence.afterSinkParked(group: facts.group)
        case .resolver: return when.isEmpty ? "it goes on with the fresh URL" : "the resolver is asked again\(when)"
        case .backoff:
            let retry = facts.task.retry
            return
                (["it is tried again\(when)" + (retry?.count.map { ", \($0)" } ?? ""), retry?.end].compactMap { $0 })
                .joined(separator: ", ")
        case .sameFile: return WaitSentence.afterSameFile
        case .originPaused:
            let sooner = situation.origins.compactMap {
                WaitSentence.sooner($0.key, until: $0.pausedUntil, isTried: $0.isTried, at: situation.at)
            }.first
            return "it goes on\(when)\(sooner.map { "; \($0)" } ?? "")"
        case .groupFull: return "it goes on when another transfer of the group ends"
        case .originFull:
            return urgent.map { WaitSentence.afterUrgent($0, of: facts.group) } ?? WaitSentence.afterOriginFull
        case .prerequisites: return "it begins when the groups that it waits for allow it"
        case .windowClosed: return "it goes on\(when.isEmpty ? " when its group may run" : when)"
        case .rateLimited: return "it goes on as the rate allows"
        case .workersBusy:
            return facts.workers.freeSlots > 0
                ? WaitSentence.afterWorkersBusy
                : situation.urgentForSlots.map { WaitSentence.afterUrgent($0, of: facts.group, isForSlots: true) }
                    ?? WaitSentence.afterWorkersBusy
        // Only for groups.
        case .unsealed: return nil
        }
    }
}
