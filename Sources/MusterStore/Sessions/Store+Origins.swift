public import MusterCore
import MusterPostgres

/// An origin as it is stored.
public struct OriginRecord: Sendable {
    /// Scheme, host and port.
    public var key: String
    /// Its own cap on connections, if it has one.
    public var maxConnections: Int32?
    /// The number of connections that it may have now. It is lower than the cap after a refusal, and grows with the time
    /// since (range contract, row 24).
    public var allowedConnections: Int32
    /// The number of connections that sessions have to it now (adr/0024).
    public var connections: Int64
    /// The present leases on it, and the bytes fetched under them.
    public var inHand: LeasedBytes
    /// Nothing is leased on it before this time.
    public var pausedUntil: Timestamp?
    /// Whether the origin asked for the pause itself. In that case one connection tries it sooner (row 25).
    public var isTried: Bool
    /// When it last refused because of too many connections or requests at once.
    public var limitedAt: Timestamp?
    /// The whole seconds since then.
    public var secondsSinceRefusal: Int64?
    /// Seconds for which it has refused connections and served nothing; `nil` while it serves.
    public var secondsOut: Int64?
    /// Why it may have fewer connections now than its cap; `nil` if it may have all of them.
    public var limit: Limit?
    /// Recent speed in bytes per second.
    public var bytesPerSecond: Int64
    /// The fleet's byte budget for it, in bytes per second; `nil` for no limit.
    public var bytesPerSecondLimit: Int64?

    /// The last refusal of an origin that was, or may have been, for too much at once.
    public struct Limit: Sendable, Hashable {
        /// The status that it refused with; `nil` for a reset.
        public let status: Int32?
        /// The whole seconds since then.
        public let seconds: Int64
    }

    /// The sums over its leases, to be joined to `origins o`.
    static let leases = LeasedBytes.sums(where: "l.origin_id = o.id")

    /// Columns of `origins o` joined with `leases`.
    ///
    /// - Parameters:
    ///   - cap: the cap of origins that have none of their own.
    ///   - group: the group for which they are read, if it is one: an origin may be paused for it alone.
    static func columns(cap: Int32, group: SQL = "NULL") -> SQL {
        """
        o.key, o.max_connections, allowed_connections(o, \(cap)) AS allowed, (SELECT count(*) FROM lanes_to(o.id)) AS lanes,
        CASE WHEN o.not_before > statement_timestamp() THEN o.not_before WHEN rests_alone(o, \(group)) THEN o.alone_until END AS paused_until, coalesce(o.try_at < o.not_before, false) AS is_tried,
        o.limited_at,
        CASE WHEN o.limited_at IS NOT NULL
            THEN greatest(0, extract(epoch FROM statement_timestamp() - o.limited_at)) END::bigint AS limited_seconds,
        allowed_connections(o, \(cap)) < coalesce(o.max_connections, \(cap)) AS is_limited, o.limited_with,
        CASE WHEN o.out_since IS NOT NULL
            THEN greatest(0, extract(epoch FROM statement_timestamp() - o.out_since)) END::bigint AS seconds_out,
        bytes_per_second(o.rate_bytes, o.rate_at, 'epoch') AS rate, o.bytes_per_second AS rate_limit, u.*
        """
    }
}

extension OriginRecord {
    /// A row with `columns`.
    init(_ row: PostgresRow) throws {
        key = try row.decode("key")
        maxConnections = try row.decode("max_connections")
        allowedConnections = try row.decode("allowed")
        connections = try row.decode("lanes")
        inHand = try LeasedBytes(row)
        pausedUntil = try row.moment("paused_until")
        isTried = try row.decode("is_tried")
        limitedAt = try row.moment("limited_at")
        let seconds = try row.decode("limited_seconds", as: Int64?.self)
        let status = try row.decode("limited_with", as: Int32?.self)
        secondsSinceRefusal = seconds
        limit = try row.decode("is_limited") ? Limit(status: status, seconds: seconds ?? 0) : nil
        secondsOut = try row.decode("seconds_out")
        bytesPerSecond = try row.decode("rate")
        bytesPerSecondLimit = try row.decode("rate_limit")
    }
}

extension Store {
    /// A page of the known origins, by key.
    public func origins(after: String?, limit: Int32) async throws -> [OriginRecord] {
        try await query(
            """
            SELECT \(OriginRecord.columns(cap: policy.connectionsPerOrigin)) FROM origins o CROSS JOIN \(OriginRecord.leases)
            WHERE \(after)::text IS NULL OR o.key > \(after)
            ORDER BY o.key LIMIT \(limit)
            """
        ).map(OriginRecord.init)
    }

    /// Sets the limits that a user wants for an origin. The origin need not be known yet. Setting or clearing the cap also
    /// forgets what was learned from refusals (row 24).
    public func setOrigin(
        _ key: String, maxConnections: Change<Int32> = .keep, bytesPerSecond: Change<Int64> = .keep,
        pausedUntil: Change<Timestamp> = .keep
    ) async throws -> OriginRecord {
        let until = pausedUntil.value.map { PostgresTimestamp(microsecondsSinceEpoch: $0.microseconds) }
        // Work may become leasable: a pause may have ended, or the cap may be larger.
        _ = try await write(
            """
            SELECT change_origin(\(key), \(maxConnections.isSet), \(maxConnections.value), \(pausedUntil.isSet), \(until),
                \(bytesPerSecond.isSet), \(bytesPerSecond.value))::text
            """, waking: .work)
        return try OriginRecord(
            try await query(
                """
                SELECT \(OriginRecord.columns(cap: policy.connectionsPerOrigin)) FROM origins o CROSS JOIN \(OriginRecord.leases)
                WHERE o.key = \(key)
                """)[0])
    }

    /// Adds up the bytes received from origins since the last call, for their speeds. Returns the number of origins that
    /// sent something.
    @discardableResult
    public func foldOriginRates() async throws -> Int64 {
        try await count("SELECT fold_origin_rates() AS count", waking: [])
    }

    /// Moves files of which nothing has come, and that wait at a paused origin, to another of their sources.
    ///
    /// - Parameter limit: the most files that are looked at for each such origin.
    /// - Returns: how many were moved.
    @discardableResult
    public func leaveRestingOrigins(limit: Int = 10_000) async throws -> Int64 {
        try await count("SELECT leave_resting_origins(\(Int32(clamping: limit))) AS count", waking: .work)
    }
}
