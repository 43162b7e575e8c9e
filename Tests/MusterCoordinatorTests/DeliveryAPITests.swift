import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// Deliveries to real receivers (fault F15): each arrives at least once, or is visibly dead (I9).
@Suite struct DeliveryAPITests {
    /// Whatever a receiver does wrong, the same delivery is sent again until the receiver acknowledges it.
    @Test func receiverOfAllFaultsGetsEverythingUnchanged() async throws {
        let faults: [WebhookReceiver.Answer] = [
            .status(500), .hang, .die, .status(302, headers: [.init("Location", "/elsewhere")]), .status(404),
            .late(.seconds(1)), .status(429, headers: [.init("Retry-After", "0")]),
        ]
        let receiver = try await WebhookReceiver.start { id, attempt in
            // Each event meets two of the faults, and starts at a different one.
            let first = Int(id.split(separator: "-").dropFirst().first ?? "") ?? 0
            return attempt <= 2 ? faults[(first + attempt) % faults.count] : .taken
        }
        try await RunningCoordinator.with(configure: { $0.deliverQuickly() }) { coordinator in
            _ = try await coordinator.client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
            try await coordinator.makeEvents(14)
            let done = try await coordinator.deliveries("all deliveries", state: .delivered) { $0.count == 14 }
            #expect(done.allSatisfy { $0.attempts >= 1 && $0.status == 200 && $0.failure == nil })
            let events = try await coordinator.client.events(after: 0, limit: 100).items
            let seen = Dictionary(grouping: receiver.deliveries, by: \.id)
            #expect(Set(seen.keys) == Set(events.map(\.id)))
            for (id, tries) in seen {
                #expect(tries.count >= 3, "\(id)")
                #expect(Set(tries.map(\.body)).count == 1, "\(id) came with different bytes")
                #expect(tries.filter { $0.answer.isAcknowledgement }.count == 1, "\(id)")
                #expect(tries.allSatisfy { $0.path == "/hook" })
            }
        }
        await receiver.stop()
    }

    @Test func receiverThatIsDownGetsEverythingWhenItIsBack() async throws {
        let first = try await WebhookReceiver.start(host: "127.0.0.9")
        try await RunningCoordinator.with(configure: { $0.deliverQuickly(tries: 1_000) }) { coordinator in
            _ = try await coordinator.client.createSubscription(SubscriptionRequest(name: "s", url: first.url))
            try await coordinator.makeEvents(1, "before")
            // The delivery has to be acknowledged, not just received: with its answer lost it would be sent again.
            try await coordinator.deliveries("the first delivery", state: .delivered) { $0.count == 1 }
            await first.stop()
            try await coordinator.makeEvents(10, "during")
            try await coordinator.deliveries("failures") { items in
                items.filter { $0.failure != nil && $0.state == .pending }.count >= 8
            }
            let second = try await WebhookReceiver.start(host: first.host, port: first.port)
            try await coordinator.deliveries("all deliveries", state: .delivered) { $0.count == 11 }
            #expect(Set(second.deliveries.map(\.id)).count == 10)
            await second.stop()
        }
    }

    @Test func receiverThatIsGoneIsLeftAloneUntilItIsWantedAgain() async throws {
        let isBack = Observed(false)
        let receiver = try await WebhookReceiver.start { _, _ in isBack.value ? .taken : .status(410) }
        try await RunningCoordinator.with(configure: { $0.deliverQuickly() }) { coordinator in
            let client = coordinator.client
            _ = try await client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
            try await coordinator.makeEvents(1)
            try await coordinator.deliveries("the 410") { $0.first?.status == 410 }
            let disabled = try await client.subscription("s")
            #expect(!disabled.enabled && disabled.disabledReason?.contains("410") == true)
            try await coordinator.makeEvents(2, "more")
            let asked = receiver.deliveries.count
            let waiting = try await client.deliveries(state: .pending, limit: 10).items
            #expect(waiting.map(\.nextTryAt) == [nil], "nothing is due while it is disabled")
            isBack.update { $0 = true }
            let enabled = try await client.changeSubscription("s", SubscriptionPatch(enabled: true))
            #expect(enabled.enabled && enabled.disabledReason == nil)
            try await coordinator.deliveries("all deliveries", state: .delivered) { $0.count == 3 }
            #expect(asked == 1 && receiver.deliveries.count == 4)
        }
        await receiver.stop()
    }

    @Test func retryAfterIsHonoured() async throws {
        let receiver = try await WebhookReceiver.start { _, _ in
            .status(503, headers: [.init("Retry-After", "7200")])
        }
        try await RunningCoordinator.with(configure: { $0.deliverQuickly() }) { coordinator in
            _ = try await coordinator.client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
            try await coordinator.makeEvents(1)
            let items = try await coordinator.deliveries("the 503") { $0.first?.status == 503 }
            let delivery = try #require(items.first)
            let (next, tried) = (try #require(delivery.nextTryAt), try #require(delivery.triedAt))
            #expect(delivery.state == .pending && next.since(tried) >= .seconds(7_200))
        }
        await receiver.stop()
    }

    @Test func deliveryThatWasGivenUpCanBeReplayed() async throws {
        let isWell = Observed(false)
        let receiver = try await WebhookReceiver.start { _, _ in isWell.value ? .taken : .status(500) }
        try await RunningCoordinator.with(configure: { $0.deliverQuickly(tries: 3) }) { coordinator in
            let client = coordinator.client
            _ = try await client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
            try await coordinator.makeEvents(1)
            let dead = try #require(
                try await coordinator.deliveries("the end", state: .dead) { $0.count == 1 }.first)
            #expect(dead.attempts == 3 && receiver.deliveries.count == 3)
            #expect(try await client.subscription("s").dead == 1)
            isWell.update { $0 = true }
            #expect(try await client.replay(delivery: dead.id).state == .pending)
            try await coordinator.deliveries("the replay", state: .delivered) { $0.count == 1 }
            #expect(Set(receiver.deliveries.map(\.body)).count == 1 && Set(receiver.deliveries.map(\.id)).count == 1)
        }
        await receiver.stop()
    }

    @Test(arguments: [WebhookReceiver.Answer.endless, .silentBody])
    func statusCountsWhateverTheBodyIs(answer: WebhookReceiver.Answer) async throws {
        let receiver = try await WebhookReceiver.start { _, _ in answer }
        try await RunningCoordinator.with(configure: { $0.deliverQuickly() }) { coordinator in
            _ = try await coordinator.client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
            try await coordinator.makeEvents(2)
            try await coordinator.deliveries("all deliveries", state: .delivered) { $0.count == 2 }
            #expect(receiver.deliveries.count == 2)
        }
        await receiver.stop()
    }

    @Test func receiverIsAskedEightTimesAtOnceAtMost() async throws {
        let receiver = try await WebhookReceiver.start { _, _ in .late(.milliseconds(100)) }
        try await RunningCoordinator.with(configure: { $0.deliverQuickly() }) { coordinator in
            _ = try await coordinator.client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
            try await coordinator.makeEvents(40)
            try await coordinator.deliveries("all deliveries", state: .delivered) { $0.count == 40 }
            #expect(receiver.mostAtOnce <= 8 && receiver.deliveries.count == 40)
        }
        await receiver.stop()
    }

    @Test func bothSecretsSignWhileTheyChange() async throws {
        let receiver = try await WebhookReceiver.start()
        try await RunningCoordinator.with(configure: { $0.deliverQuickly() }) { coordinator in
            let client = coordinator.client
            let made = try await client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
            let old = try WebhookSecret(validating: try #require(made.secret))
            let new = try WebhookSecret(validating: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            try await coordinator.makeEvents(1)
            try await receiver.wait(for: "the first event") { $0.count == 1 }
            let changed = try await client.changeSubscription("s", SubscriptionPatch(secret: Secret(new.text)))
            #expect(changed.previousSecretUntil != nil && changed.secret == nil)
            try await coordinator.makeEvents(1, "h")
            let deliveries = try await receiver.wait(for: "the second event") { $0.count == 2 }
            func expected(_ delivery: WebhookReceiver.Delivery, _ secrets: [WebhookSecret]) -> String {
                secrets.map { secret in
                    "v1,"
                        + WebhookRequest.signature(
                            id: delivery.id, timestamp: delivery.header("webhook-timestamp") ?? "",
                            body: Array(delivery.body.utf8), secret: secret)
                }.joined(separator: " ")
            }
            #expect(deliveries[0].header("webhook-signature") == expected(deliveries[0], [old]))
            #expect(deliveries[1].header("webhook-signature") == expected(deliveries[1], [new, old]))
            #expect(deliveries[0].header("content-type")?.hasPrefix("application/cloudevents+json") == true)
        }
        await receiver.stop()
    }
}
