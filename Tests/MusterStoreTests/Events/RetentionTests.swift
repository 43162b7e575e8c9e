import MusterCore
import MusterStore
import MusterTestSupport
import Testing

/// How long events are kept.
@Suite struct RetentionTests {
    private static let day = Duration.seconds(86_400)

    @Test func oldEventsAreDroppedAndLaterReadsOfThemAreRefused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeEvents(5)
            try await fixture.age(1...3)
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day) == 3)
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day) == 0)
            #expect(try await fixture.positions() == [4, 5])
            for after in Int64(0)...2 {
                await #expect(throws: EventRefusal.gone(oldest: 4)) {
                    try await fixture.store.events(after: after, limit: 10)
                }
            }
            #expect(try await fixture.store.events(after: 3, limit: 10).events.map(\.position) == [4, 5])
            #expect(try await fixture.store.events(after: nil, limit: 10).events.map(\.position) == [4, 5])
            // A new consumer starts at the oldest event, whatever it acknowledges.
            #expect(try await fixture.store.acknowledge(0, consumer: "c").position == 3)
        }
    }

    @Test func newestEventIsKeptHoweverOldItIs() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeEvents(3)
            try await fixture.age(1...3)
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day) == 2)
            #expect(try await fixture.positions() == [3])
            try await fixture.makeEvents(1, "more")
            #expect(try await fixture.store.events(after: nil, limit: 10).events.map(\.position) == [3, 4])
        }
    }

    @Test func eventsAreDroppedInTheOrderOfTheLog() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeEvents(6)
            // An event's time is that of its statement, but the log's order is that of the commits.
            try await fixture.age(1...2)
            try await fixture.age(4...5)
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day, limit: 1) == 1)
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day, limit: 10) == 1)
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day, limit: 10) == 0)
            #expect(try await fixture.positions() == [3, 4, 5, 6])
        }
    }

    @Test func eventWithAnOpenDeliveryIsKept() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(4)
            try await fixture.age(1...4)
            // The subscription has no delivery of these events yet.
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day) == 0)
            try await fixture.fanOut()
            let claimed = try await fixture.claim()
            try #require(claimed.count == 4)
            try await fixture.store.settle(claimed[0], as: .delivered(status: 200))
            try await fixture.store.settle(
                claimed[1], as: .failed(status: 500, failure: "no", wait: nil, until: nil))
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day) == 3)
            // The first is delivered, the second can be replayed, the third is under way, the fourth is the newest.
            #expect(try await fixture.positions() == [2, 3, 4])
            await #expect(throws: EventRefusal.gone(oldest: 4)) { try await fixture.store.events(after: 1, limit: 10) }
            #expect(try await fixture.store.settle(claimed[2], as: .delivered(status: 200)))
            try await fixture.age(.settlement, by: Self.day * 2, of: claimed[1].id)
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day) == 0)
            #expect(try await fixture.positions() == [4])
            let left = try await fixture.store.deliveries(state: nil, subscription: nil, after: 0, limit: 10)
            #expect(left.map(\.position) == [4])
        }
    }

    @Test func disabledSubscriptionDoesNotKeepEvents() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(2)
            try await fixture.fanOut()
            var change = SubscriptionChange()
            change.isEnabled = false
            _ = try await fixture.store.change(subscription: "s", change)
            try await fixture.makeEvents(3, "more")
            try await fixture.age(1...4)
            #expect(try await fixture.store.dropOldEvents(olderThan: Self.day) == 4)
            // Its pending deliveries become dead, where users see them, and can be replayed for as long again.
            #expect(
                try await fixture.store.deliveries(state: .dead, subscription: "s", after: 0, limit: 9).map(\.position)
                    == [1, 2])
            change.isEnabled = true
            #expect(try await fixture.store.change(subscription: "s", change).position == 4)
            try await fixture.fanOut()
            #expect(try await fixture.claim().map(\.event.position) == [5])
        }
    }
}
