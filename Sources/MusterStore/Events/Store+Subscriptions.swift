public import MusterCore
import MusterPostgres

/// A subscription as it is stored, without its secrets.
public struct SubscriptionRecord: Sendable {
    /// Its name.
    public let name: String
    /// Where events are posted to.
    public let url: String
    /// The pattern of group names whose events it gets; `nil` for all groups.
    public let groups: String?
    /// The types of events that it gets; empty for all types.
    public let types: [String]
    /// Whether anything is posted.
    public let isEnabled: Bool
    /// Why Muster disabled the subscription: its receiver said that it is gone. `nil` if Muster did not disable it.
    public let disabledReason: String?
    /// Until when deliveries are also signed with the previous secret; `nil` if they are not.
    public let previousUntil: Timestamp?
    /// The log position up to which deliveries have been made of events.
    public let position: Int64
    /// The number of unsettled deliveries, counted up to ``Limits/deliveriesCounted``.
    public let pending: Int64
    /// The number of dead deliveries, counted up to ``Limits/deliveriesCounted``.
    public let dead: Int64
    /// When it was created.
    public let createdAt: Timestamp

    /// Columns of `subscriptions s`.
    static let columns: SQL = """
        s.name, s.url, s.groups, s.types, s.enabled, s.disabled_reason, s.position, s.created_at,
        CASE WHEN s.previous_until > statement_timestamp() THEN s.previous_until END AS previous_until,
        (SELECT count(*) FROM (SELECT FROM deliveries d WHERE d.subscription_id = s.id AND d.state = 'pending'
            LIMIT \(Limits.deliveriesCounted)) AS p) AS pending,
        (SELECT count(*) FROM (SELECT FROM deliveries d WHERE d.subscription_id = s.id AND d.state = 'dead'
            LIMIT \(Limits.deliveriesCounted)) AS p) AS dead
        """

    init(_ row: PostgresRow) throws {
        name = try row.decode("name")
        url = try row.decode("url")
        groups = try row.decode("groups")
        types = try row.decode("types")
        isEnabled = try row.decode("enabled")
        disabledReason = try row.decode("disabled_reason")
        previousUntil = try row.moment("previous_until")
        position = try row.decode("position")
        pending = try row.decode("pending")
        dead = try row.decode("dead")
        createdAt = Timestamp(try row.decode("created_at"))
    }
}

/// A change of a subscription. `nil` keeps the present value.
public struct SubscriptionChange: Sendable {
    /// Where events are posted to.
    public var url: String?
    /// The secret that signs deliveries. The previous secret also signs, for `Limits.secretRotation`.
    public var secret: WebhookSecret?
    /// Which groups' events it gets.
    public var groups: String?
    /// Which types it gets.
    public var types: [String]?
    /// Whether anything is posted.
    public var isEnabled: Bool?

    /// A change of nothing.
    public init() {}
}

extension Store {
    /// Creates a subscription, which gets the events from now on. The caller has checked its name, URL and filter.
    ///
    /// A repetition gets the existing subscription (I10) if everything is the same, or if it belongs to the same request
    /// (`Store.request`).
    ///
    /// - Returns: the subscription, and the secret that signs for it.
    public func createSubscription(
        _ name: String, url: String, secret: WebhookSecret, filter: EventFilter
    ) async throws -> (record: SubscriptionRecord, secret: String) {
        let count: Int64 = try await query("SELECT count(*) AS count FROM subscriptions WHERE name <> \(name)")[0]
            .decode("count")
        guard count < Limits.subscriptions else { throw EventRefusal.tooManySubscriptions }
        let secret = try await once(waking: []) { connection in
            _ = try await connection.query(
                """
                INSERT INTO subscriptions (name, url, secret, groups, expression, types, position)
                SELECT \(name), \(url), \(secret.text), \(filter.groups), \(filter.groupsExpression), \(filter.types), last_position
                FROM event_log
                ON CONFLICT (name) DO NOTHING
                """)
            let same = try await connection.query(
                """
                SELECT s.secret FROM subscriptions s
                WHERE s.name = \(name) AND s.url = \(url) AND s.secret = \(secret.text)
                    AND s.types = \(filter.types) AND s.groups IS NOT DISTINCT FROM \(filter.groups)
                """)
            guard !same.isEmpty else { throw EventRefusal.subscriptionExists(name) }
            return secret.text
        }
        return (try await subscription(name), secret)
    }

    /// One subscription.
    public func subscription(_ name: String) async throws -> SubscriptionRecord {
        let rows = try await query("SELECT \(SubscriptionRecord.columns) FROM subscriptions s WHERE s.name = \(name)")
        guard let row = rows.first else { throw EventRefusal.noSuchSubscription(name) }
        return try SubscriptionRecord(row)
    }

    /// A page of subscriptions, by name.
    public func subscriptions(after: String?, limit: Int32) async throws -> [SubscriptionRecord] {
        try await query(
            """
            SELECT \(SubscriptionRecord.columns) FROM subscriptions s
            WHERE \(after)::text IS NULL OR s.name > \(after)
            ORDER BY s.name LIMIT \(limit)
            """
        ).map(SubscriptionRecord.init)
    }

    /// Changes a subscription, all or nothing. Deliveries made before stay, whatever the new filter is.
    public func change(subscription name: String, _ change: SubscriptionChange) async throws -> SubscriptionRecord {
        let groups = change.groups == "*" ? nil : change.groups
        let filter = try EventFilter(groups: groups, types: change.types ?? [])
        let secret = change.secret?.text
        let isOther: SQL = "\(secret)::text IS NOT NULL AND \(secret)::text <> s.secret"
        let isKnown = try await transaction(waking: .deliveries) { connection in
            // This comes first, since it locks the log, which comes before subscriptions in the order of locks.
            if let isEnabled = change.isEnabled {
                _ = try await connection.query("SELECT enable_subscription(\(name), \(isEnabled))::text")
            }
            return try await !connection.query(
                """
                UPDATE subscriptions s SET
                    url = coalesce(\(change.url), s.url),
                    groups = CASE WHEN \(change.groups != nil) THEN \(groups) ELSE s.groups END,
                    expression = CASE WHEN \(change.groups != nil) THEN \(filter.groupsExpression) ELSE s.expression END,
                    types = CASE WHEN \(change.types != nil) THEN \(filter.types) ELSE s.types END,
                    -- A repetition is no second rotation: the secret before this one would be lost.
                    previous_secret = CASE WHEN \(isOther) THEN s.secret ELSE s.previous_secret END,
                    previous_until = CASE WHEN \(isOther)
                        THEN statement_timestamp() + \(Limits.secretRotation.milliseconds)::bigint * interval '1 ms'
                        ELSE s.previous_until END,
                    secret = coalesce(\(secret), s.secret)
                WHERE s.name = \(name) RETURNING s.id
                """
            ).isEmpty
        }
        guard isKnown else { throw EventRefusal.noSuchSubscription(name) }
        return try await subscription(name)
    }

    /// Deletes a subscription and its deliveries.
    public func removeSubscription(_ name: String) async throws {
        _ = try await once(waking: []) { connection in
            let rows = try await connection.query("DELETE FROM subscriptions WHERE name = \(name) RETURNING name")
            guard !rows.isEmpty else { throw EventRefusal.noSuchSubscription(name) }
            return name
        }
    }
}
