public import MusterCore
import MusterPostgres

/// An origin as it is stored.
public struct OriginRecord: Sendable {
    /// Scheme, host and port.
    public let key: String
    /// Its own cap on connections, if it has one.
    public let maxConnections: Int32?
    /// How many connections it may have now: fewer than the cap after it refused, one more with every ten seconds (range contract, row 24).
    public let allowedConnections: Int32
    /// Connections that sessions have to it now (adr/0024).
    public let connections: Int64
    /// Leases on it now, and what is fetched under them.
    public let inHand: LeasedBytes
    /// Nothing is leased on it before this moment.
    public let pausedUntil: Timestamp?
    /// Whether it asked for that itself, so that one connection tries it sooner (row 25).
    public let isTried: Bool
    /// When it last refused because of too much at once.
    public let limitedAt: Timestamp?
    /// The whole seconds since then.
    public let secondsSinceRefusal: Int64?
    /// For how many seconds it has refused connections and served nothing; `nil` where it serves.
    public let secondsOut: Int64?
    /// Why it may have fewer connections now than its cap says, if that is so.
    public let limit: Limit?
    /// Bytes per second lately.
    public let bytesPerSecond: Int64
    /// How many bytes per second the fleet may take from it, if that is limited.
    public let bytesPerSecondLimit: Int64?

    /// What an origin refused last because there was too much at once, or may have.
    public struct Limit: Sendable, Hashable {
        /// The status that it refused with; `nil` for a reset.
        public let status: Int32?
        /// The whole seconds since then.
        public let seconds: Int64

        /// A limit.
        public init(status: Int32?, seconds: Int64) {
            self.status = status
            self.seconds = seconds
        }
    }

    /// What of its leases is told, to be joined to `origins o`.
    static let leases = LeasedBytes.sums(where: "l.origin_id = o.id")

    /// Of `origins o` with `leases`, where `cap` is the one of origins that have none of their own.
    static func columns(cap: Int32) -> SQL {
        """
        o.key, o.max_connections, allowed_connections(o, \(cap)) AS allowed, (SELECT count(*) FROM lanes_to(o.id)) AS lanes,
        CASE WHEN o.not_before > statement_timestamp() THEN o.not_before END AS paused_until, coalesce(o.try_at < o.not_before, false) AS is_tried,
        o.limited_at,
        CASE WHEN o.limited_at IS NOT NULL
            THEN greatest(0, extract(epoch FROM statement_timestamp() - o.limited_at)) END::bigint AS limited_seconds,
        allowed_connections(o, \(cap)) < coalesce(o.max_connections, \(cap)) AS is_limited, o.limited_with,
        CASE WHEN o.out_since IS NOT NULL
            THEN greatest(0, extract(epoch FROM statement_timestamp() - o.out_since)) END::bigint AS seconds_out,
        bytes_per_second(o.rate_bytes, o.rate_at, 'epoch') AS rate, o.bytes_per_second AS rate_limit, u.*
        """
    }

    init(_ row: PostgresRow) throws {
        key = try row.decode("key")
        maxConnections = try row.decode("max_connections")
        allowedConnections = try row.decode("allowed")
        connections = try row.decode("lanes")
        inHand = try LeasedBytes(row)
        pausedUntil = try row.decode("paused_until", as: PostgresTimestamp?.self).map(Timestamp.init)
        isTried = try row.decode("is_tried")
        limitedAt = try row.decode("limited_at", as: PostgresTimestamp?.self).map(Timestamp.init)
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
    /// A page of the origins that are known, by their keys.
    public func origins(after: String?, limit: Int32) async throws -> [OriginRecord] {
        try await query(
            """
            SELECT \(OriginRecord.columns(cap: policy.connectionsPerOrigin)) FROM origins o CROSS JOIN \(OriginRecord.leases)
            WHERE \(after)::text IS NULL OR o.key > \(after)
            ORDER BY o.key LIMIT \(limit)
            """
        ).map(OriginRecord.init)
    }

    /// Sets what people wish of an origin, which need not be known yet. Another cap, or none, also takes back what its refusals
    /// taught (row 24).
    public func setOrigin(
        _ key: String, maxConnections: Change<Int32> = .keep, bytesPerSecond: Change<Int64> = .keep,
        pausedUntil: Change<Timestamp> = .keep
    ) async throws -> OriginRecord {
        let rate = bytesPerSecond.wish
        let cap = maxConnections.wish
        let pause = pausedUntil.wish
        let until = pause.value.map { PostgresTimestamp(microsecondsSinceEpoch: $0.microseconds) }
        // A pause that ends, or a larger cap, lets work out.
        _ = try await write(
            """
            SELECT change_origin(\(key), \(cap.isSet), \(cap.value), \(pause.isSet), \(until),
                \(rate.isSet), \(rate.value))::text
            """, waking: .work)
        return try OriginRecord(
            try await query(
                """
                SELECT \(OriginRecord.columns(cap: policy.connectionsPerOrigin)) FROM origins o CROSS JOIN \(OriginRecord.leases)
                WHERE o.key = \(key)
                """)[0])
    }

    /// Adds up what came from origins since the last time, for their speeds. Returns of how many origins something came.
    @discardableResult
    public func foldOriginRates() async throws -> Int64 {
        try await count("SELECT fold_origin_rates() AS count", waking: .nobody)
    }

    /// Has files of which nothing has come, and that wait at origins which are left alone, fetched from other sources of theirs.
    ///
    /// - Parameter limit: how many are looked at for each such origin.
    /// - Returns: how many have moved.
    @discardableResult
    public func leaveRestingOrigins(limit: Int = 10_000) async throws -> Int64 {
        try await count("SELECT leave_resting_origins(\(Int32(clamping: limit))) AS count", waking: .work)
    }
}
