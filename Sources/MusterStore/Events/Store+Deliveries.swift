public import MusterCore
import MusterPostgres

extension Store {
    /// Makes deliveries of the events that subscriptions have not seen yet. Returns whether there may be more.
    public func fanOutEvents(limit: Int32 = 1_000) async throws -> Bool {
        // The caller is the task that the wake would reach.
        try await count("SELECT fan_out_events(\(limit)) AS count", waking: []) > 0
    }

    /// Claims deliveries that are due.
    ///
    /// - Parameters:
    ///   - each: how many deliveries of one subscription may be under way at once in the whole fleet.
    ///   - hold: how long a claim counts. After that another coordinator may claim the delivery (fault F3).
    public func claimDeliveries(
        limit: Int32, each: Int32 = Limits.deliveriesPerSubscription, hold: Duration
    ) async throws -> [ClaimedDelivery] {
        guard limit > 0 else { return [] }
        // Repeated when its answer was lost: deliveries claimed by the lost answer are due again once their claims expire.
        return try await write(
            """
            SELECT id, epoch, attempts, subscription, url, secret, previous_secret, moment,
                event_position, event_id, event_type, event_subject, event_at, event_data
            FROM claim_deliveries(\(limit), \(each), \(hold.milliseconds)::bigint * interval '1 ms')
            """, waking: []
        ).map(ClaimedDelivery.init)
    }

    /// Records the result of a try. Returns whether the claim still counted.
    @discardableResult
    public func settle(_ delivery: ClaimedDelivery, as result: DeliveryResult) async throws -> Bool {
        let (kind, status, failure, wait, until): (String, Int32?, String?, Duration?, Timestamp?) =
            switch result {
            case .delivered(let status): ("delivered", status, nil, nil, nil)
            case .failed(let status, let failure, let wait, let until): ("failed", status, failure, wait, until)
            case .gone(let status, let reason): ("gone", status, reason, nil, nil)
            case .released: ("released", nil, nil, nil, nil)
            }
        return try await write(
            """
            SELECT settle_delivery(\(delivery.id), \(delivery.epoch), \(kind), \(status), \(failure),
                \(wait?.milliseconds)::bigint * interval '1 ms',
                \(until.map { PostgresTimestamp(microsecondsSinceEpoch: $0.microseconds) }),
                \(Limits.webhookRetryAfter.milliseconds)::bigint * interval '1 ms', \(delivery.url)) AS counted
            """, waking: [])[0].decode("counted")
    }

    /// A page of deliveries, the oldest first.
    ///
    /// - Throws: `EventRefusal.noSuchSubscription` if the named subscription does not exist.
    public func deliveries(
        state: DeliveryState?, subscription: String?, after: Int64, limit: Int32
    ) async throws -> [DeliveryRecord] {
        var id: Int64?
        if let subscription {
            let rows = try await query("SELECT id FROM subscriptions WHERE name = \(subscription)")
            guard let row = rows.first else { throw EventRefusal.noSuchSubscription(subscription) }
            id = try row.decode("id")
        }
        var condition: SQL = "d.id > \(after)"
        if let id { condition += " AND d.subscription_id = \(id)" }
        if let state { condition += " AND d.state = \(state.rawValue)" }
        return try await query(
            """
            SELECT \(DeliveryRecord.columns)
            FROM deliveries d JOIN subscriptions s ON s.id = d.subscription_id JOIN events e ON e.position = d.position
            WHERE \(condition) ORDER BY d.id LIMIT \(limit)
            """
        ).map(DeliveryRecord.init)
    }

    /// Delivers an event once more, whatever its state; the schedule of tries starts over.
    public func replay(delivery id: Int64) async throws -> DeliveryRecord {
        let rows = try await write(
            """
            WITH replayed AS (
                UPDATE deliveries d SET state = 'pending', attempts = 0, next_at = statement_timestamp(), claimed = false,
                    epoch = d.epoch + 1, settled_at = NULL
                WHERE d.id = \(id) RETURNING d.*
            )
            SELECT \(DeliveryRecord.columns)
            FROM replayed d JOIN subscriptions s ON s.id = d.subscription_id JOIN events e ON e.position = d.position
            """, waking: .deliveries)
        guard let row = rows.first else { throw EventRefusal.noSuchDelivery(id) }
        return try DeliveryRecord(row)
    }
}
