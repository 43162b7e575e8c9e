public import MusterCore
import MusterPostgres

/// An entry of the log that has its position.
public struct EventRecord: Sendable {
    /// Its place in the log.
    public let position: Int64
    /// Its deterministic id (I9).
    public let id: String
    /// Its type.
    public let type: String
    /// `groups/<name>`.
    public let subject: String
    /// When it happened.
    public let time: Timestamp
    /// The facts as JSON; the same text whenever it is read.
    public let data: String
}

extension Store {
    /// Gives positions to events that were committed since. Returns how many got one.
    public func sequenceEvents(limit: Int32 = 10_000) async throws -> Int64 {
        try await query("SELECT sequence_events(\(limit)) AS count")[0].decode("count")
    }

    /// Reads the log from after a position, for all groups or one.
    ///
    /// - Returns: the events in order, and the position up to which the log was read: with a filter that can be further than
    ///   the last event.
    public func events(after: Int64, limit: Int32, group: String?) async throws -> (events: [EventRecord], next: Int64)
    {
        let subject = group.map { "groups/\($0)" }
        // The end of the log is read first: what is added meanwhile is left for the next call.
        let last: Int64 = try await query("SELECT last_position FROM event_log")[0].decode("last_position")
        let rows = try await query(
            """
            SELECT position, id, type, subject, at, data::text AS data FROM events
            WHERE position > \(after) AND position <= \(last) AND (\(subject)::text IS NULL OR subject = \(subject))
            ORDER BY position LIMIT \(limit)
            """)
        let events = try rows.map { row in
            EventRecord(
                position: try row.decode("position"), id: try row.decode("id"), type: try row.decode("type"),
                subject: try row.decode("subject"), time: Timestamp(try row.decode("at")), data: try row.decode("data"))
        }
        let isFull = events.count == Int(limit)
        return (events, isFull ? events.last?.position ?? after : max(after, last))
    }
}
