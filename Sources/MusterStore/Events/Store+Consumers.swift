public import MusterCore
import MusterPostgres

/// A named reader of the log, as it is stored.
public struct ConsumerRecord: Sendable, Hashable {
    /// Its name.
    public let name: String
    /// The log position up to which everything is acknowledged.
    public let position: Int64
    /// The number of log positions after that.
    public let behind: Int64
    /// When its place last moved.
    public let acknowledgedAt: Timestamp
}

/// Where a consumer stands in a log.
public struct ConsumerPlace: Sendable, Hashable {
    /// The log position up to which everything is acknowledged; `nil` for a consumer that has acknowledged nothing, which
    /// reads from the oldest event on.
    public let position: Int64?
    /// The log's name.
    public let log: String

    /// A place.
    public init(position: Int64?, log: String) {
        self.position = position
        self.log = log
    }
}

extension Store {
    /// The place of a consumer.
    public func place(of consumer: String) async throws -> ConsumerPlace {
        let row = try await query(
            "SELECT log_name() AS log, (SELECT position FROM consumers WHERE name = \(consumer)) AS position")[0]
        return ConsumerPlace(position: try row.decode("position"), log: try row.decode("log"))
    }

    /// Moves a consumer's place forward. A position before the present place changes nothing, so late acknowledgements are
    /// harmless.
    ///
    /// - Parameter log: the log that the position belongs to, if the consumer knows it.
    /// - Throws: `EventRefusal.otherLog` if the position belongs to another log; `beyondEnd` if the log does not reach that
    ///   far; `tooManyConsumers` if the name is new and there are as many consumers as allowed.
    public func acknowledge(
        _ position: Int64, of log: String? = nil, consumer name: String
    ) async throws -> ConsumerRecord {
        let rows = try await write(
            "SELECT stands, last, at FROM acknowledge_events(\(name), \(position), \(Limits.consumers), \(log))",
            waking: [])
        guard let row = rows.first else {
            let last = try await query("SELECT last_position FROM event_log")[0]
            throw EventRefusal.beyondEnd(last: try last.decode("last_position"))
        }
        guard let last = try row.decode("last", as: Int64?.self) else { throw EventRefusal.otherLog }
        guard let stands = try row.decode("stands", as: Int64?.self) else { throw EventRefusal.tooManyConsumers }
        return ConsumerRecord(
            name: name, position: stands, behind: max(0, last - stands),
            acknowledgedAt: Timestamp(try row.decode("at")))
    }

    /// Holds a consumer for one process, or renews its hold: of several processes that read under one name, only the holder
    /// handles the events.
    ///
    /// - Returns: when the hold ends.
    /// - Throws: `EventRefusal.consumerHeld` while another process holds the consumer.
    public func hold(_ consumer: String, holder: String, for length: Duration) async throws -> Timestamp {
        let rows = try await write(
            """
            SELECT holder, until
            FROM hold_consumer(\(consumer), \(holder), \(length.milliseconds)::bigint * interval '1 ms')
            """, waking: [])
        guard let row = rows.first, try row.decode("holder") == holder else {
            throw EventRefusal.consumerHeld(consumer)
        }
        return Timestamp(try row.decode("until"))
    }

    /// Releases a consumer. It does nothing if another process holds it.
    public func release(_ consumer: String, holder: String) async throws {
        _ = try await write(
            "DELETE FROM consumer_holds WHERE name = \(consumer) AND holder = \(holder)", waking: [])
    }

    /// A page of consumers, by name.
    public func consumers(after: String?, limit: Int32) async throws -> [ConsumerRecord] {
        try await query(
            """
            SELECT c.name, c.position, greatest(0, l.last_position - c.position) AS behind, c.acknowledged_at
            FROM consumers c CROSS JOIN event_log l
            WHERE \(after)::text IS NULL OR c.name > \(after)
            ORDER BY c.name LIMIT \(limit)
            """
        ).map { row in
            ConsumerRecord(
                name: try row.decode("name"), position: try row.decode("position"), behind: try row.decode("behind"),
                acknowledgedAt: Timestamp(try row.decode("acknowledged_at")))
        }
    }

    /// Deletes a consumer and its place.
    public func removeConsumer(_ name: String) async throws {
        _ = try await once(waking: []) { connection in
            let rows = try await connection.query("DELETE FROM consumers WHERE name = \(name) RETURNING name")
            guard !rows.isEmpty else { throw EventRefusal.noSuchConsumer(name) }
            return name
        }
    }
}
