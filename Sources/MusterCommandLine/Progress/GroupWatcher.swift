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

    /// How often a group is looked at that somebody watches.
    private static let livePeriod: Duration = .milliseconds(500)
    /// How often at the most and at the least a group is looked at that nobody watches: short groups are noticed soon,
    /// long ones cost little.
    private static let quietPeriod: (first: Duration, last: Duration) = (.milliseconds(100), .seconds(1))
    /// Events of one answer.
    private static let newsPage = 500
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
        var position: Int64? = if case .after(let start) = news, display.printsNews { start } else { nil }
        var period = display.showsFiles ? Self.livePeriod : Self.quietPeriod.first
        let patience = Patience(console: console)
        do {
            while true {
                let document = try await patience.persist(until: deadline) { try await client.group(group) }
                if let start = position {
                    position = try await patience.persist(until: deadline) {
                        try await printNews(after: start, &display)
                    }
                }
                if document.state.isTerminal {
                    if let start = position { try await printLastNews(after: start, &display) }
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
                let next = clock.now + period
                try await clock.sleep(until: deadline.map { min($0, next) } ?? next)
                if !display.showsFiles { period = min(period * 3 / 2, Self.quietPeriod.last) }
            }
        } catch {
            try? display.finish()
            throw error
        }
    }

    /// The position behind the last event of the group there is.
    func lastPosition() async throws -> Int64 {
        var position: Int64 = 0
        while true {
            let page = try await client.events(after: position, limit: Limits.pageSize, group: group)
            position = max(position, page.next)
            if page.items.isEmpty { return position }
        }
    }

    /// Prints the lines of the files that finished after a position, and returns the position after them.
    private func printNews(after start: Int64, _ display: inout ProgressDisplay) async throws -> Int64 {
        var position = start
        while true {
            let page = try await client.events(after: position, limit: Self.newsPage, group: group)
            for event in page.items {
                if let news = FileNews(event) { try display.print(news.line) }
            }
            position = max(position, page.next)
            if page.items.count < Self.newsPage { return position }
        }
    }

    /// Prints the lines of what happened since, up to the group's own end: events get their positions a moment after what they
    /// tell of, so that the group may be seen to be done before its last ones are in the log.
    private func printLastNews(after start: Int64, _ display: inout ProgressDisplay) async throws {
        var position = start
        while true {
            let page = try await client.events(
                after: position, limit: Self.newsPage, group: group, wait: Self.lastWait)
            for event in page.items {
                if let news = FileNews(event) { try display.print(news.line) }
            }
            position = max(position, page.next)
            if page.items.isEmpty || page.items.contains(where: { $0.type.hasPrefix("dev.muster.group.") }) { return }
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
