import MusterAPI
import MusterCore

/// Waits for something to happen by the long poll of the log: a command that waits for a group is told of its end at once, and
/// asks for nothing meanwhile.
///
/// What is read of the log serves as a bell. The command looks at the group itself when it rings, and also when it has been silent for a
/// while, so that nothing depends on the bell alone.
struct LogListener {
    private let client: MusterClient
    private let group: String?
    private let patience: Patience
    /// The position up to which the log was read.
    private(set) var position: Int64
    /// The log that the position is of.
    private var log: String?

    /// Events of one answer.
    static let page = 500

    /// A listener to a group, or to all of them.
    ///
    /// - Parameters:
    ///   - position: where in the log to begin; with what comes from now on when absent.
    ///   - deadline: when to give up.
    init(
        _ client: MusterClient, group: String?, after position: Int64? = nil, patience: Patience,
        until deadline: ContinuousClock.Instant? = nil
    ) async throws {
        self.client = client.once
        self.group = group
        self.patience = patience
        self.position = 0
        (self.position, log) = try await endOfLog(until: deadline)
        if let position { self.position = min(position, self.position) }
    }

    /// The events after the position, as many as fit into an answer, and moves it; waits up to `limit` for the first of them.
    mutating func listen(
        limit: Duration,
        until deadline: ContinuousClock.Instant? = nil
    ) async throws -> [EventDocument] {
        let start = position
        func wait() -> Duration {
            min(limit, deadline.map { max(.zero, $0 - ContinuousClock.now) } ?? limit, Limits.longPoll)
        }
        let page: EventsDocument
        do {
            page = try await patience.persist(until: deadline, usual: wait()) {
                try await read(after: start, of: log, group: group, limit: Self.page, wait: wait())
            }
        } catch let problem as Problem where problem.code == .otherLog {
            // Nothing of the group is certain but what it says itself.
            (position, log) = try await endOfLog(until: deadline)
            return []
        }
        log = page.log
        position = max(position, page.next)
        return page.items
    }

    /// Passes over everything there is: for those who only want to be woken, and are woken by more than they can read.
    mutating func skip(until deadline: ContinuousClock.Instant? = nil) async throws {
        let end = try await endOfLog(until: deadline)
        (position, log) = (end.log == log ? max(position, end.position) : end.position, end.log)
    }

    /// The end of the log: an answer without events tells how far it was looked through, and no group has this name.
    private func endOfLog(until deadline: ContinuousClock.Instant?) async throws -> (position: Int64, log: String?) {
        let nobody = RandomToken.make()
        let page = try await patience.persist(until: deadline) {
            try await read(after: 0, of: nil, group: nobody, limit: 1, wait: nil)
        }
        return (page.next, page.log)
    }

    /// Reads the log; where the events after the position are not kept any more, from the oldest that are.
    private func read(
        after position: Int64, of log: String?, group: String?, limit: Int, wait: Duration?
    ) async throws -> EventsDocument {
        do {
            return try await client.events(after: position, of: log, limit: limit, group: group, wait: wait)
        } catch let problem as Problem where problem.code == .eventsGone {
            guard let oldest = problem.oldest, oldest - 1 > position else { throw problem }
            return try await client.events(after: oldest - 1, of: log, limit: limit, group: group, wait: wait)
        }
    }
}
