import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// Subscriptions: their names, secrets, filters and changes.
@Suite struct SubscriptionTests {
    @Test func nameBelongsToOneSubscription() async throws {
        try await StoreFixture.run { fixture in
            let first = try await fixture.subscribe("s", groups: "a*", types: ["b", "a"])
            #expect(first.groups == "a*" && first.types == ["a", "b"] && first.isEnabled && first.position == 0)
            // The same request again changes nothing (I10); any other is refused.
            #expect(try await fixture.subscribe("s", groups: "a*", types: ["a", "b"]).createdAt == first.createdAt)
            await #expect(throws: EventRefusal.subscriptionExists("s")) { try await fixture.subscribe("s") }
            try await fixture.store.removeSubscription("s")
            await #expect(throws: EventRefusal.noSuchSubscription("s")) { try await fixture.store.subscription("s") }
            await #expect(throws: EventRefusal.noSuchSubscription("s")) {
                try await fixture.store.removeSubscription("s")
            }
        }
    }

    /// The store or its caller makes the secret up, so that a repetition brings another one; the request's key identifies it (I10).
    @Test func repeatedCreationReturnsTheSecretOfTheFirst() async throws {
        try await StoreFixture.run { fixture in
            func create(secret: UInt8, key: String?) async throws -> String {
                let secret = try StoreFixture.secret(secret)
                return try await fixture.serving(key) {
                    try await fixture.store.createSubscription(
                        "s", url: "http://s.test/", secret: secret, filter: .all
                    ).secret
                }
            }
            let made = try await create(secret: 1, key: "k")
            #expect(try await create(secret: 2, key: "k") == made)
            #expect(try await create(secret: 1, key: "other") == made, "everything is the same")
            for key in ["another", nil] {
                await #expect(throws: EventRefusal.subscriptionExists("s")) { try await create(secret: 2, key: key) }
            }
        }
    }

    @Test func bothSecretsSignForADayAfterARotation() async throws {
        try await StoreFixture.run { fixture in
            let (old, new) = (try StoreFixture.secret(1), try StoreFixture.secret(2))
            try await fixture.subscribe()
            try await fixture.makeEvents(1)
            try await fixture.fanOut()
            func secrets() async throws -> [WebhookSecret] {
                try await fixture.passWaits()
                return try #require(try await fixture.claim().first).secrets
            }
            #expect(try await secrets() == [old])
            var change = SubscriptionChange()
            change.secret = new
            let changed = try await fixture.store.change(subscription: "s", change)
            let until = try #require(changed.previousUntil)
            let rest = until.since(try await fixture.store.now())
            #expect(rest > Limits.secretRotation - .seconds(60) && rest <= Limits.secretRotation)
            #expect(try await secrets() == [new, old])
            // A repeated change is no second rotation.
            #expect(try await fixture.store.change(subscription: "s", change).previousUntil == until)
            #expect(try await secrets() == [new, old])
            try await fixture.set(.rotation, ago: .seconds(1))
            #expect(try await secrets() == [new])
            #expect(try await fixture.store.subscription("s").previousUntil == nil)
        }
    }

    /// Whichever part of the change fails, or is the last before a crash.
    @Test(arguments: ["url", "enabled"]) func changeOfASubscriptionIsAtomic(column: String) async throws {
        try await StoreFixture.run { fixture in
            let before = try await fixture.subscribe()
            try await fixture.refuseChange(of: column)
            var change = SubscriptionChange()
            change.url = "http://new.test/"
            change.isEnabled = false
            await #expect(throws: PostgresError.self) {
                try await fixture.store.change(subscription: "s", change)
            }
            let after = try await fixture.store.subscription("s")
            #expect(after.url == before.url && after.isEnabled)
        }
    }

    @Test func receiverThatIsGoneDisablesItsSubscription() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.subscribe("other")
            try await fixture.makeEvents(2)
            try await fixture.fanOut()
            let claimed = try await fixture.claim(limit: 2, each: 1)
            let mine = try #require(claimed.first { $0.subscription == "s" })
            #expect(try await fixture.store.settle(mine, as: .gone(status: 410, reason: "gone")))
            let disabled = try await fixture.store.subscription("s")
            #expect(!disabled.isEnabled && disabled.disabledReason == "gone" && disabled.pending == 2)
            #expect(Set(try await fixture.claim().map(\.subscription)) == ["other"])
            // Its deliveries wait, and events of the meantime follow once it is enabled.
            try await fixture.makeEvents(1, "more")
            try await fixture.fanOut()
            var change = SubscriptionChange()
            change.isEnabled = true
            let enabled = try await fixture.store.change(subscription: "s", change)
            #expect(enabled.isEnabled && enabled.disabledReason == nil)
            try await fixture.fanOut()
            let again = try await fixture.claim().filter { $0.subscription == "s" }
            #expect(again.map(\.event.position).sorted() == [1, 2, 3] && again.allSatisfy { $0.attempts == 0 })
        }
    }

    /// A thousand subscriptions may be listed at once, each with millions of waiting deliveries.
    @Test func countsOfDeliveriesAreCapped() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(1)
            try await fixture.makeDeliveries(Limits.deliveriesCounted + 1)
            let record = try await fixture.store.subscription("s")
            #expect(record.pending == 1_000 && record.dead == 1_000)
        }
    }

    @Test func goneOfAnOldURLDoesNotDisableTheSubscription() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(1)
            try await fixture.fanOut()
            let claimed = try #require(try await fixture.claim().first)
            var change = SubscriptionChange()
            change.url = "http://new.test/"
            _ = try await fixture.store.change(subscription: "s", change)
            #expect(try await fixture.store.settle(claimed, as: .gone(status: 410, reason: "gone")))
            #expect(try await fixture.store.subscription("s").isEnabled)
            #expect(try await fixture.claim().map(\.url) == ["http://new.test/"])
        }
    }

    @Test func changedFilterAppliesToLaterEvents() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.subscribe()
            try await fixture.makeEvents(1, "a")
            try await fixture.fanOut()
            var change = SubscriptionChange()
            change.groups = "b*"
            #expect(try await fixture.store.change(subscription: "s", change).groups == "b*")
            try await fixture.makeEvents(["a2", "b2"])
            try await fixture.fanOut()
            #expect(try await fixture.claim().map(\.event.subject) == ["groups/a1", "groups/b2"])
            change.groups = "*"
            #expect(try await fixture.store.change(subscription: "s", change).groups == nil)
            await #expect(throws: EventRefusal.noSuchSubscription("none")) {
                try await fixture.store.change(subscription: "none", change)
            }
        }
    }
}
