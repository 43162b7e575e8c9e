import MusterAPI
import MusterCore

/// Follows a group until it is done, and shows how it goes.
struct GroupWatcher {
    /// Which files get a line of their own as they end, where lines are wanted.
    enum News: Sendable {
        /// None.
        case none
        /// Those that fail, and whose events come after a position.
        case failures(after: Int64)
        /// Those that finish too.
        case all(after: Int64)

        /// The position.
        fileprivate var start: Int64? {
            switch self {
            case .none: nil
            case .failures(let start), .all(let start): start
            }
        }

        /// Whether nothing is wanted but what fails from now on.
        fileprivate var areFailuresAlone: Bool {
            if case .failures = self { true } else { false }
        }
    }

    /// How a group ended.
    struct End: Sendable {
        /// The group.
        var group: GroupDocument
        /// How many failures had lines of their own while they happened.
        var namedFailures: Int64
        /// What came while it was waited for.
        var gain: Gain
    }

    /// What was seen last, for those who stop before the end.
    private struct Look {
        var snapshot: ProgressSnapshot
        var troubles: [TaskDocument]
    }

    /// The coordinator.
    let client: MusterClient
    /// The group's name.
    let group: String
    /// Where it is shown.
    let console: Console
    /// How it goes on asking.
    let patience: Patience
    /// The environment, for the terminal's abilities.
    let environment: [String: String]
    /// Whether a group of which all that is left is paused counts as done.
    var endsAtPause = false
    /// The tasks of it whose numbers are shown; all of them when absent.
    var part: GroupPart?
    /// Where what is waited for began, if that was before the wait.
    var start: Gain.Start?
    /// Failures up to this moment are those of an earlier run, and are not told again.
    var since: Timestamp?
    /// The most bytes per second that the command allows its workers, if it does: that is why no more comes.
    var maxRate: Int64?

    /// Whether the workers are the command's own: it is said why files are not begun when nothing has changed for a while, and nothing comes any more
    /// when it stops.
    var ownsWorkers = false

    /// How often a group is looked at that somebody watches in a terminal: its bytes grow without any event.
    private static let livePeriod: Duration = .milliseconds(500)
    /// The least time between two looks at a group that keeps ringing: short groups are noticed soon, long ones cost little.
    private static let pace: (first: Duration, last: Duration) = (.milliseconds(100), .seconds(1))
    /// How often a group is looked at that is told of in lines, if nothing rings: what went wrong is said soon.
    private static let plainPeriod: Duration = .seconds(1)
    /// How long the last look of a command that stops early may take.
    private static let lastLook: Duration = .milliseconds(500)
    /// How long the end of the group is waited for in the log once the group is known to be done.
    private static let lastWait: Duration = .seconds(2)

    /// Waits until the group is done. Who stops before that, by a signal or at the deadline, is told how far it came.
    ///
    /// - Parameters:
    ///   - deadline: when to give up.
    /// - Throws: `CommandFailure.timedOut` at the deadline; `Problem` when the group is gone; `Idleness.Lost` when nobody can go on with it.
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
            // The log's end is known before the first look: what happens after that look rings.
            var listener = try await LogListener(
                client, group: group, after: told, patience: patience, until: deadline)
            var generation: Int32?
            var end: GroupState?
            while true {
                var document = try await patience.persist(until: deadline) { try await client.group(group) }
                // Somebody may have reopened it between its end and this look.
                if let end, let generation, document.generation > generation { document.state = end }
                generation = document.generation
                let begun = beginning ?? Gain.Start(document, at: clock.now)
                beginning = begun
                if document.state.isTerminal || endsAtPause && document.tasks.isAtRest {
                    // Nothing comes behind the group's own end, if that has been told. Of a group that had ended before, nobody
                    // waits to be told.
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
                // A full page has more behind it whose lines are wanted now.
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
                // When time is up nothing more is asked for.
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

    /// That time is up, and what to type next.
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

    /// The position behind the last event there is, of whatever group.
    ///
    /// - Throws: `CommandFailure.timedOut` at the deadline.
    func lastPosition(deadline: ContinuousClock.Instant? = nil) async throws -> Int64 {
        try await LogListener(client, group: group, patience: patience, until: deadline).position
    }

    /// What there is to be shown now: what was seen last may be old by the time that a command is stopped.
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

    /// How long nobody rings until the group is looked at all the same.
    private func quiet(_ display: ProgressDisplay) -> Duration {
        display.showsFiles ? Self.livePeriod : console.json ? Limits.longPoll : Self.plainPeriod
    }

    /// How the group ended, if one of the events tells.
    private static func end(_ events: [EventDocument]) -> GroupState? {
        events.lazy.compactMap { $0.knownType?.endOfGroup }.first
    }

    /// Tells what happened since, up to the group's own end: events get their positions a moment after what they tell of, so that
    /// the group may be seen to be done before its last ones are in the log.
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

    /// The group beside a part, if there is one by now.
    private func beside(_ part: GroupPart) async throws -> GroupDocument? {
        guard let name = part.beside else { return nil }
        do {
            return try await client.group(name)
        } catch let problem as Problem where problem.code == .groupNotFound {
            return nil
        }
    }

    /// What there is to be shown of a group: in a terminal some of its files, and everywhere those that are in trouble.
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
        // That it is held open by what is paused is no news where nothing else is wanted.
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
        // Those in trouble have the room that the others leave, and half of it at the least.
        let troubles = look.troubles.prefix(max(most / 2, most - others.count))
        let files = (troubles + others).prefix(most)
        look.snapshot.files = files.map(ProgressSnapshot.File.init)
        // Some may have ended since the group was looked at: where all were seen, it is known how many are not shown.
        let underWay = files.count { $0.state == .active || $0.state == .finalizing }
        look.snapshot.moreFiles =
            areAll
            ? Int64(troubles.count + others.count - files.count)
            : max(0, shown.tasks.active + shown.tasks.finalizing - Int64(underWay))
        return look
    }
}
