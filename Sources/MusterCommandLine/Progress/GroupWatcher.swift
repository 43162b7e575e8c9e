import MusterAPI
import MusterCore

/// Follows a group until it is done, and shows its progress.
struct GroupWatcher {
    /// Which files get a line of their own as they end, where the display prints lines.
    enum News: Sendable {
        /// None.
        case none
        /// Files that fail, from events after a position.
        case failures(after: Int64)
        /// Files that fail or finish, from events after a position.
        case all(after: Int64)

        /// The position.
        fileprivate var start: Int64? {
            switch self {
            case .none: nil
            case .failures(let start), .all(let start): start
            }
        }

        /// Whether only failures are wanted.
        fileprivate var areFailuresAlone: Bool {
            if case .failures = self { true } else { false }
        }
    }

    /// How a group ended.
    struct End: Sendable {
        /// The group.
        var group: GroupDocument
        /// How many failures were printed as they happened.
        var namedFailures: Int64
        /// What arrived during the wait.
        var gain: Gain
    }

    /// The last state seen, which is shown when the wait stops before the end.
    private struct Look {
        var snapshot: ProgressSnapshot
        var troubles: [TaskDocument]
    }

    /// The coordinator.
    let client: MusterClient
    /// The group's name.
    let group: String
    /// Where progress is shown.
    let console: Console
    /// How requests are repeated while the coordinator is away.
    let patience: Patience
    /// The environment, for the terminal's abilities.
    let environment: [String: String]
    /// Whether a group counts as done when all of its unfinished tasks are paused.
    var endsAtPause = false
    /// The tasks whose numbers are shown; all tasks of the group when absent.
    var part: GroupPart?
    /// The start from which the gain is counted, if that was before the wait.
    var start: Gain.Start?
    /// Failures up to this moment are those of an earlier run, and are not reported again.
    var since: Timestamp?
    /// The command's own limit for its workers in bytes per second, if any; shown as a note, since it bounds the speed.
    var maxRate: Int64?

    /// Whether the workers belong to this command. Then it says why files are not begun when nothing has changed for a while, and nothing
    /// more arrives once it stops.
    var ownsWorkers = false

    /// How often a group is queried for a terminal: its bytes grow without any event.
    private static let livePeriod: Duration = .milliseconds(500)
    /// The least time between two queries of a group with frequent events, from the first to the longest: short groups are noticed soon,
    /// long ones cost little.
    private static let pace: (first: Duration, last: Duration) = (.milliseconds(100), .seconds(1))
    /// How often a group without events is queried for plain lines, so that failures are reported soon.
    private static let plainPeriod: Duration = .seconds(1)
    /// How long the last query of a command that stops early may take.
    private static let lastLook: Duration = .milliseconds(500)
    /// How long to wait for the group's last event in the log once the group is known to be done.
    private static let lastWait: Duration = .seconds(2)

    /// Waits until the group is done. When a signal or the deadline stops the wait before that, the progress so far is shown.
    ///
    /// - Parameters:
    ///   - deadline: when to give up.
    /// - Throws: `CommandFailure.timedOut` at the deadline; `Problem` when the group is gone; `Idleness.Lost` when no worker can go on with it.
    func untilTerminal(deadline: ContinuousClock.Instant? = nil, news: News = .none) async throws -> End {
        let clock = ContinuousClock()
        var display = ProgressDisplay(console: console, environment: environment)
        let told = display.printsFailures ? news.start : nil
        var teller = NewsTeller(news)
        var pace = Self.pace.first
        var last: Look?
        var standstill: Standstill?
        var silence: Silence?
        var idleness: Idleness?
        var beginning = start
        do {
            // The log's end is read before the first query: every later event wakes the listener.
            var listener = try await LogListener(
                client, group: group, after: told, patience: patience, until: deadline)
            var generation: Int32?
            var end: GroupState?
            while true {
                var document = try await patience.persist(until: deadline) { try await client.group(group) }
                // The group may have been reopened between its end and this query.
                if let end, let generation, document.generation > generation { document.state = end }
                generation = document.generation
                let begun = beginning ?? Gain.Start(document, at: clock.now)
                beginning = begun
                if document.state.isTerminal || endsAtPause && document.tasks.isAtRest {
                    // The group's own end is its last event: nothing is left once it was read. When the group was done before the wait, and
                    // only new failures are wanted, there are none.
                    if told != nil, end == nil, !(last == nil && news.areFailuresAlone) {
                        try await tellLastNews(&listener, &teller, display, deadline)
                    }
                    try display.finish()
                    return End(
                        group: document, namedFailures: teller.failures,
                        gain: Gain(document, since: begun.without(teller.startedOver), now: clock.now))
                }
                if ownsWorkers {
                    standstill = Standstill(document, after: standstill, now: clock.now)
                    idleness = Idleness(document, after: idleness, now: clock.now)
                    try await idleness?.check(group, client)
                }
                silence = Silence(document, after: silence, ownsWorkers: ownsWorkers, now: .ofThisMachine)
                let look = try await look(document, display, deadline, standstill, silence)
                try display.show(look.snapshot, troubles: look.troubles, now: clock.now)
                last = look
                if let deadline, clock.now >= deadline {
                    throw CommandFailure.timedOut(Self.unfinished(document))
                }
                let next = clock.now + (display.showsFiles ? Self.livePeriod : pace)
                let events = try await listener.listen(limit: quiet(display), until: deadline)
                if told != nil { try teller.tell(events, display) }
                end = Self.end(events)
                if end != nil { continue }
                if told == nil, events.count == LogListener.page { try await listener.skip(until: deadline) }
                // After a full page there are more events, whose lines are due now.
                if told == nil || events.count < LogListener.page {
                    try await clock.sleep(until: deadline.map { min($0, next) } ?? next)
                }
                if let deadline, clock.now >= deadline {
                    throw CommandFailure.timedOut(Self.unfinished(document))
                }
                pace = min(pace * 3 / 2, Self.pace.last)
            }
        } catch {
            if let last, !(error is OutputClosed) {
                // After the deadline no more requests are sent.
                let isOver = deadline.map { clock.now >= $0 } ?? false
                let look = isOver ? last : await lastLook(display) ?? last
                let gain = beginning.map {
                    Gain(look.snapshot.group, since: $0.without(teller.startedOver), now: clock.now)
                }
                try? display.stop(look.snapshot, ownsWorkers ? gain : nil, troubles: look.troubles)
            } else {
                try? display.finish()
            }
            throw error
        }
    }

    /// The message at the deadline, with the command to type next.
    private static func unfinished(_ group: GroupDocument) -> String {
        group.tasks.isAtRest && group.tasks.paused > 0
            ? "the group \(group.name) is not done yet, and what is left of it is paused; go on with: muster resume \(ShellWord(group.name))"
            : "the group \(group.name) is not done yet; to see what it waits for: muster explain \(ShellWord(group.name))"
    }

    /// Makes sure that there is such a group.
    ///
    /// - Throws: `CommandFailure.timedOut` at the deadline; `Problem` when there is none.
    func find(deadline: ContinuousClock.Instant? = nil) async throws {
        _ = try await patience.persist(until: deadline) { try await client.group(group) }
    }

    /// The position of the end of the log, whatever group the last event is of.
    ///
    /// - Throws: `CommandFailure.timedOut` at the deadline.
    func lastPosition(deadline: ContinuousClock.Instant? = nil) async throws -> Int64 {
        try await LogListener(client, group: group, patience: patience, until: deadline).position
    }

    /// The state to show when a command is stopped, queried once more: the last state seen may be old.
    private func lastLook(_ display: ProgressDisplay) async -> Look? {
        // A task of its own, since this one may be cancelled.
        let looking = Task {
            try await look(try await client.group(group), display, nil)
        }
        let limit = Task {
            try await Task.sleep(for: Self.lastLook)
            looking.cancel()
        }
        defer { limit.cancel() }
        return try? await looking.value
    }

    /// Whether the last failure of a task happened in this run, if it has one.
    private func isNews(_ task: TaskDocument) -> Bool {
        guard let since, let failure = task.failure else { return true }
        return failure.at > since
    }

    /// How long to wait for an event before the group is queried anyway.
    private func quiet(_ display: ProgressDisplay) -> Duration {
        display.showsFiles ? Self.livePeriod : console.json ? Limits.longPoll : Self.plainPeriod
    }

    /// The state in which the group ended, if one of the events tells it.
    private static func end(_ events: [EventDocument]) -> GroupState? {
        events.lazy.compactMap { $0.knownType?.endOfGroup }.first
    }

    /// Prints the remaining events up to the group's own end. Events get their positions a moment after the change that they tell of, so
    /// that the group may be seen to be done before its last events are in the log.
    private func tellLastNews(
        _ listener: inout LogListener, _ teller: inout NewsTeller, _ display: ProgressDisplay,
        _ deadline: ContinuousClock.Instant?
    ) async throws {
        while true {
            let events = try await listener.listen(limit: Self.lastWait, until: deadline)
            try teller.tell(events, display)
            if events.isEmpty || Self.end(events) != nil { return }
        }
    }

    /// The other group of a part; `nil` while it does not exist.
    private func beside(_ part: GroupPart) async throws -> GroupDocument? {
        guard let name = part.beside else { return nil }
        do {
            return try await client.group(name)
        } catch let problem as Problem where problem.code == .groupNotFound {
            return nil
        }
    }

    /// The state to show of a group: its tasks in trouble, and in a terminal some of its files.
    private func look(
        _ document: GroupDocument, _ display: ProgressDisplay, _ deadline: ContinuousClock.Instant?,
        _ standstill: Standstill? = nil, _ silence: Silence? = nil
    ) async throws -> Look {
        var names = [group]
        var shown = document
        if let part {
            let other = try await beside(part)
            if let other { names.append(other.name) }
            shown = part.numbers(of: document, beside: other)
        }
        // With `endsAtPause`, a note that paused tasks hold the group open is no news.
        if endsAtPause { shown.notes = [] }
        if let maxRate, !document.state.isTerminal {
            shown.notes.append("it is limited to \(ProgressSnapshot.rate(maxRate)) now")
        }
        if let silence, let note = try await silence.note(of: document, client) { shown.notes.append(note) }
        if let standstill, let note = try await standstill.note(of: group, client) { shown.notes.append(note) }
        var look = Look(snapshot: ProgressSnapshot(group: shown), troubles: [])
        if shown.trouble != nil, display.shownTroubles > 0 {
            for name in names where look.troubles.count < display.shownTroubles {
                look.troubles += try await patience.persist(until: deadline) {
                    try await client.tasksInTrouble(of: name, limit: display.shownTroubles).filter(isNews)
                }
            }
            // The newest comes first: if it is of an earlier run, all are.
            if look.troubles.isEmpty { look.snapshot.group.trouble = nil }
        }
        guard display.showsFiles else { return look }
        let most = ProgressSnapshot.shownFiles
        var others: [TaskDocument] = []
        let known = Set(look.troubles.map(\.key))
        let pages = [TaskState.active, .finalizing].flatMap { state in names.map { (state, $0) } }
        var areAll = true
        for (state, name) in pages {
            guard others.count < most else {
                areAll = false
                break
            }
            let page = try await patience.persist(until: deadline) {
                try await client.tasks(of: name, state: state, limit: most)
            }
            if page.next != nil { areAll = false }
            others += page.items.filter { !known.contains($0.key) }.map { task in
                var task = task
                if !isNews(task) { task.retry = nil }
                return task
            }
        }
        // Tasks in trouble get the lines that the others leave, and at least half of all.
        let troubles = look.troubles.prefix(max(most / 2, most - others.count))
        let files = (troubles + others).prefix(most)
        look.snapshot.files = files.map(ProgressSnapshot.File.init)
        // Tasks may have ended since the group was queried: if all were listed, count those that are not shown.
        let underWay = files.count { $0.state == .active || $0.state == .finalizing }
        look.snapshot.moreFiles =
            areAll
            ? Int64(troubles.count + others.count - files.count)
            : max(0, shown.tasks.active + shown.tasks.finalizing - Int64(underWay))
        return look
    }
}
