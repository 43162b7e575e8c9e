public import MusterCore
import MusterPostgres

/// An event in the log, with its position.
public struct EventRecord: Sendable, Hashable {
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
    /// The facts as JSON. Every read gives the same text.
    public let data: String
}

/// A contiguous part of the log.
public struct EventStretch: Sendable, Hashable {
    /// The events in it that match the filter, by ascending position.
    public let events: [EventRecord]
    /// The position up to which the log was read. With a filter it can be beyond the last event.
    public let next: Int64
    /// Whether that is the end of the log.
    public let isEnd: Bool
    /// The log's name. It changes when the database has lost its latest changes.
    public let log: String

    /// A stretch.
    public init(events: [EventRecord], next: Int64, isEnd: Bool, log: String) {
        self.events = events
        self.next = next
        self.isEnd = isEnd
        self.log = log
    }
}

extension Store {
    /// Moves newly committed events into the log, which gives them their positions. Returns how many no longer wait.
    public func sequenceEvents(limit: Int32 = 10_000) async throws -> Int64 {
        // The caller tells the readers when it is done.
        try await count("SELECT sequence_events(\(limit)) AS count", waking: [])
    }

    /// Reads the log from after a position.
    ///
    /// - Parameters:
    ///   - after: the last position that the reader knows; `nil` begins with the oldest event that is kept.
    ///   - group: reads the events of this group only.
    ///   - filter: which events are wanted.
    ///   - name: the log that the position belongs to, if the reader knows it.
    /// - Throws: `EventRefusal.otherLog` if the position belongs to another log, or to the log before the database was
    ///   restored; `EventRefusal.gone` if events after the position have been dropped (I9: a reader is told what it
    ///   misses); `beyondEnd` if the log does not reach that far.
    public func events(
        after: Int64?, limit: Int32, group: String? = nil, filter: EventFilter = .all, of name: String? = nil
    ) async throws -> EventStretch {
        let subject = group.map { "groups/\($0)" }
        // The end of the log is read first: events added meanwhile are left for the next call.
        let log = try await query("SELECT first_position, last_position, log_name() AS name FROM event_log")[0]
        let own: String = try log.decode("name")
        guard name == nil || name == own else { throw EventRefusal.otherLog }
        let start = try after ?? log.decode("first_position") - 1
        let last: Int64 = try log.decode("last_position")
        // A position of this log that lies beyond its end shows a restore that no coordinator has noticed yet.
        guard start <= last else { throw name == nil ? EventRefusal.beyondEnd(last: last) : .otherLog }
        let end = filter == .all ? last : min(last, start + Limits.eventPositions)
        let types = filter.types
        let expression = filter.groupsExpression
        let rows = try await query(
            """
            SELECT position, id, type, subject, at, data::text AS data FROM events
            WHERE position > \(start) AND position <= \(end) AND (\(subject)::text IS NULL OR subject = \(subject))
                AND (\(expression)::text IS NULL OR substr(subject, length('groups/') + 1) ~ \(expression))
                AND (\(types) = '{}' OR type = ANY (\(types)))
            ORDER BY position LIMIT \(limit)
            """)
        let events = try rows.map(EventRecord.init)
        // The beginning of the log is compared last: events dropped after the rows were read are in the result.
        let now = try await query("SELECT first_position, log_name() AS name FROM event_log")[0]
        let first: Int64 = try now.decode("first_position")
        guard try now.decode("name") == own else { throw EventRefusal.otherLog }
        guard start >= first - 1 else {
            // A reader that asked for the oldest event starts at the new beginning.
            if after == nil {
                return try await self.events(after: nil, limit: limit, group: group, filter: filter, of: name)
            }
            throw EventRefusal.gone(oldest: first)
        }
        let isFull = events.count == Int(limit)
        let next = isFull ? events.last?.position ?? start : max(start, end)
        return EventStretch(events: events, next: next, isEnd: next >= last, log: own)
    }

    /// Drops events that are older than `age`, in the order of the log and never the newest event. An event with unsettled
    /// deliveries is kept until they are settled (I9). Returns by how much the log became shorter; there may be more if
    /// that equals `limit`.
    public func dropOldEvents(olderThan age: Duration, limit: Int32 = 2_000) async throws -> Int64 {
        try await count(
            "SELECT drop_old_events(\(age.milliseconds)::bigint * interval '1 ms', \(limit)) AS count", waking: [])
    }
}

extension EventRecord {
    /// Reads a row of `events`.
    init(_ row: PostgresRow) throws {
        position = try row.decode("position")
        id = try row.decode("id")
        type = try row.decode("type")
        subject = try row.decode("subject")
        time = Timestamp(try row.decode("at"))
        data = try row.decode("data")
    }
}
