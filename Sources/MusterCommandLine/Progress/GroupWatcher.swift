import MusterAPI
import MusterCore

/// Follows a group until it is done, and shows how it goes.
struct GroupWatcher {
    /// Which finished files get a line of their own where lines are wanted.
    enum News: Sendable {
        /// None.
        case none
        /// Those whose events come after a position.
        case after(Int64)
    }

    /// The coordinator.
    let client: MusterClient
    /// The group's name.
    let group: String
    /// Where it is shown.
    let console: Console
    /// The environment, for the terminal's abilities.
    let environment: [String: String]

    /// How often a group is looked at that somebody watches in a terminal: its bytes grow without any event.
    private static let livePeriod: Duration = .milliseconds(500)
    /// The least time between two looks at a group that keeps ringing: short groups are noticed soon, long ones cost little.
    private static let pace: (first: Duration, last: Duration) = (.milliseconds(100), .seconds(1))
    /// How long the end of the group is waited for in the log once the group is known to be done.
    private static let lastWait: Duration = .seconds(2)

    /// Waits until the group is terminal.
    ///
    /// - Parameters:
    ///   - deadline: when to give up.
    /// - Throws: `CommandFailure.timedOut` at the deadline; `Problem` when the group is gone.
    func untilTerminal(deadline: ContinuousClock.Instant? = nil, news: News = .none) async throws -> GroupDocument {
        let clock = ContinuousClock()
        var display = ProgressDisplay(console: console, environment: environment)
        var speeds = TransferSpeeds()
        let start: Int64? = if case .after(let start) = news, display.printsNews { start } else { nil }
        var pace = Self.pace.first
        let patience = Patience(console: console)
        do {
            // The log's end is known before the first look: what happens after that look rings.
            var listener = try await LogListener(client, group: group, after: start, patience: patience)
            var generation: Int32?
            var end: GroupState?
            while true {
                var document = try await patience.persist(until: deadline) { try await client.group(group) }
                // Somebody may have reopened it between its end and this look.
                if let end, let generation, document.generation > generation { document.state = end }
                generation = document.generation
                if document.state.isTerminal {
                    if start != nil { try await printLastNews(&listener, &display) }
                    try display.finish()
                    return document
                }
                var snapshot = ProgressSnapshot(group: document)
                if display.showsFiles { snapshot.files = try await files(patience, deadline) }
                speeds.update(&snapshot.files, now: clock.now)
                try display.show(snapshot, now: clock.now)
                if let deadline, clock.now >= deadline {
                    try display.finish()
                    throw CommandFailure.timedOut("the group \(group) is not done yet: \(PlainProgress.line(snapshot))")
                }
                let next = clock.now + (display.showsFiles ? Self.livePeriod : pace)
                let events = try await listener.listen(limit: quiet(display), until: deadline)
                if start != nil { try printNews(events, &display) }
                end = try Self.end(events)
                if end != nil { continue }
                if start == nil, events.count == LogListener.page { try await listener.skip() }
                // A full page has more behind it whose lines are wanted now.
                if start == nil || events.count < LogListener.page {
                    try await clock.sleep(until: deadline.map { min($0, next) } ?? next)
                }
                pace = min(pace * 3 / 2, Self.pace.last)
            }
        } catch {
            try? display.finish()
            throw error
        }
    }

    /// The position behind the last event there is.
    func lastPosition() async throws -> Int64 {
        try await LogListener(client, group: group, patience: Patience(console: console)).position
    }

    /// How long nobody rings until the group is looked at all the same.
    private func quiet(_ display: ProgressDisplay) -> Duration {
        display.showsFiles ? Self.livePeriod : console.json ? Limits.longPoll : PlainProgress.interval
    }

    /// How the group ended, if one of the events tells.
    private static func end(_ events: [EventDocument]) throws -> GroupState? {
        for event in events {
            if case .groupEnded(let facts) = try event.payload() { return facts.state }
        }
        return nil
    }

    /// Prints the lines of the files that finished.
    private func printNews(_ events: [EventDocument], _ display: inout ProgressDisplay) throws {
        for event in events {
            if let news = FileNews(try event.payload(), at: event.time) { try display.print(news.line) }
        }
    }

    /// Prints the lines of what happened since, up to the group's own end: events get their positions a moment after what they
    /// tell of, so that the group may be seen to be done before its last ones are in the log.
    private func printLastNews(_ listener: inout LogListener, _ display: inout ProgressDisplay) async throws {
        while true {
            let events = try await listener.listen(limit: Self.lastWait)
            try printNews(events, &display)
            if try events.isEmpty || Self.end(events) != nil { return }
        }
    }

    private func files(
        _ patience: Patience,
        _ deadline: ContinuousClock.Instant?
    ) async throws -> [ProgressSnapshot.File] {
        let count = ProgressSnapshot.shownFiles
        let active = try await patience.persist(until: deadline) {
            try await client.tasks(of: group, state: .active, limit: count)
        }
        var items = active.items
        if items.count < count {
            let finalizing = try await patience.persist(until: deadline) {
                try await client.tasks(of: group, state: .finalizing, limit: count - items.count)
            }
            items += finalizing.items
        }
        return items.map {
            ProgressSnapshot.File(
                name: $0.path,
                done: $0.bytes.done,
                total: $0.bytes.total,
                isFinalizing: $0.state == .finalizing
            )
        }
    }
}
