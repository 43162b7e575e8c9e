import MusterCore
import MusterPostgres
import MusterStore
import Testing

extension StoreFixture {
    /// A secret, another one for each `byte`.
    static func secret(_ byte: UInt8 = 1) throws -> WebhookSecret {
        var generator = Constant(value: UInt64(byte))
        return WebhookSecret(random: &generator)
    }

    /// Puts every event that was written into the log.
    func logEvents() async throws { while try await store.sequenceEvents() > 0 {} }

    /// The events that the log keeps, once every event that was written is in it.
    func events() async throws -> [EventRecord] {
        try await logEvents()
        return try await store.events(after: nil, limit: 1_000).events
    }

    /// What the log says of groups, in this order: `failed`, `removed`, …
    func groupEvents() async throws -> [String] {
        try await events().filter { $0.type.contains(".group.") }.map { String($0.type.split(separator: ".")[3]) }
    }

    /// Makes one event per group, in this order: an empty sealed group succeeds at once.
    func makeEvents(_ groups: [String]) async throws {
        for group in groups { try await makeGroup(group, isSealed: true) }
        try await logEvents()
    }

    /// Makes one event for each of the groups `prefix1`, `prefix2`, …
    func makeEvents(_ count: Int, _ prefix: String = "g") async throws {
        try await makeEvents((1...count).map { "\(prefix)\($0)" })
    }

    /// Creates a subscription to `http://name.test/hook`.
    @discardableResult
    func subscribe(
        _ name: String = "s", groups: String? = nil, types: [String] = []
    ) async throws -> SubscriptionRecord {
        try await store.createSubscription(
            name, url: "http://\(name).test/hook", secret: Self.secret(),
            filter: try EventFilter(groups: groups, types: types)
        ).record
    }

    /// Fans out all events.
    func fanOut() async throws { while try await store.fanOutEvents() {} }

    /// Claims due deliveries for a minute.
    func claim(limit: Int32 = 100, each: Int32 = 100) async throws -> [ClaimedDelivery] {
        try await store.claimDeliveries(limit: limit, each: each, hold: .seconds(60))
    }

    /// Makes events a year older.
    func age(_ positions: ClosedRange<Int64>) async throws {
        try await run("UPDATE events SET at = at - interval '1 year' WHERE position = ANY (\(Array(positions)))")
    }

    /// Ends all claims and waits of pending deliveries.
    func passWaits() async throws {
        try await run("UPDATE deliveries SET next_at = '-infinity' WHERE state = 'pending'")
    }

    /// Makes the database refuse to change a column of subscriptions.
    func refuseChange(of column: String) async throws {
        try await run(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$")
        try await run(
            """
            CREATE TRIGGER refuse BEFORE UPDATE ON subscriptions FOR EACH ROW
            WHEN (OLD.\(identifier: column) <> NEW.\(identifier: column)) EXECUTE FUNCTION refuse()
            """)
    }

    /// Gives the only subscription `count` pending deliveries and as many dead ones, of events from the second position on.
    func makeDeliveries(_ count: Int64) async throws {
        try await run(
            """
            WITH e AS (
                INSERT INTO events (id, position, type, subject, data, at)
                SELECT 'e-' || n, n, 'x', 'groups/g', '{}', statement_timestamp() FROM generate_series(2, 2 * \(count) + 1) AS n
                RETURNING position, position % 2 = 0 AS dead, at
            )
            INSERT INTO deliveries (subscription_id, position, state, settled_at)
            SELECT s.id, e.position, CASE WHEN e.dead THEN 'dead' ELSE 'pending' END, CASE WHEN e.dead THEN e.at END
            FROM subscriptions s, e
            """)
    }

    /// Makes the consumers `c1`, `c2`, … at the beginning of the log.
    func makeConsumers(_ count: Int64) async throws {
        try await run(
            "INSERT INTO consumers (name, position) SELECT 'c' || n, 0 FROM generate_series(1, \(count)) AS n")
    }

    /// The positions in the table of events.
    func positions() async throws -> [Int64] { try await values("SELECT position FROM events ORDER BY position") }
}

/// A generator that always returns the same number.
private struct Constant: RandomNumberGenerator {
    let value: UInt64

    mutating func next() -> UInt64 { value &* 0x0101_0101_0101_0101 }
}
