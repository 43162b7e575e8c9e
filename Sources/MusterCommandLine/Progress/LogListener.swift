import MusterAPI
import MusterCore

/// Waits for events by long-polling the log: a command that waits for a group learns of its end at once, and sends no requests meanwhile.
///
/// The events only wake the command, which then queries the group itself. It also queries the group when no event has come for a while, so
/// that nothing depends on the events alone.
struct LogListener {
    private let client: MusterClient
    private let group: String?
    private let patience: Patience
    /// The position up to which the log was read.
    private(set) var position: Int64
    /// The name of the log that the position belongs to.
    private var log: String?

    /// The most events of one answer.
    static let page = 500

    /// A listener to a group, or to all of them.
    ///
    /// - Parameters:
    ///   - position: where in the log to begin; at its end when absent.
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

    /// Returns the events after the position, as many as fit into an answer, and moves the position. Waits up to `limit` for the first event.
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
            // The position means nothing in another log: start at its end, and let the caller query the group.
            (position, log) = try await endOfLog(until: deadline)
            return []
        }
        log = page.log
        position = max(position, page.next)
        return page.items
    }

    /// Moves to the end of the log, for a caller that only wants to be woken and would get more events than it can read.
    mutating func skip(until deadline: ContinuousClock.Instant? = nil) async throws {
        let end = try await endOfLog(until: deadline)
        (position, log) = (end.log == log ? max(position, end.position) : end.position, end.log)
    }

    /// The end of the log. It is read for a group name that does not exist: an answer without events tells how far the log was searched.
    private func endOfLog(until deadline: ContinuousClock.Instant?) async throws -> (position: Int64, log: String?) {
        let absent = RandomToken.make()
        let page = try await patience.persist(until: deadline) {
            try await read(after: 0, of: nil, group: absent, limit: 1, wait: nil)
        }
        return (page.next, page.log)
    }

    /// Reads the log after the position, or from the oldest event that is still kept.
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
