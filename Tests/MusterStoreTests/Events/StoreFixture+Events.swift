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

    /// This fixture, once every event that was written is in the log.
    var logged: StoreFixture {
        get async throws {
            while try await store.sequenceEvents() > 0 {}
            return self
        }
    }

    /// Makes one event per group, in this order: an empty sealed group succeeds at once.
    func makeEvents(_ groups: [String]) async throws {
        for group in groups { try await makeGroup(group, isSealed: true) }
        _ = try await logged
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
    func fanOut() async throws {
        while try await store.fanOutEvents() {}
    }

    /// Claims due deliveries for a minute.
    func claim(limit: Int32 = 100, each: Int32 = 100) async throws -> [ClaimedDelivery] {
        try await store.claimDeliveries(limit: limit, each: each, hold: .seconds(60))
    }

    /// Makes events a year older.
    func age(_ positions: ClosedRange<Int64>) async throws {
        try await run(
            """
            UPDATE events SET at = at - interval '1 year'
            WHERE position BETWEEN \(positions.lowerBound) AND \(positions.upperBound)
            """)
    }

    /// Ends all claims and waits of pending deliveries.
    func passWaits() async throws {
        try await run("UPDATE deliveries SET next_at = '-infinity' WHERE state = 'pending'")
    }

    /// The positions in the table of events.
    func positions() async throws -> [Int64] {
        try await values("SELECT position FROM events ORDER BY position")
    }
}

/// A generator that always returns the same number.
private struct Constant: RandomNumberGenerator {
    let value: UInt64

    mutating func next() -> UInt64 { value &* 0x0101_0101_0101_0101 }
}
