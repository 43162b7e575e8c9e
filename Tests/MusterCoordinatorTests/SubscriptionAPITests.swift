import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// `/v1/subscriptions` and `/v1/deliveries`.
@Suite struct SubscriptionAPITests {
    @Test func secretIsShownOnceAndNeverAgain() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let made = try await client.createSubscription(
                SubscriptionRequest(
                    name: "s", url: "http://127.0.0.1:9/hook", groups: "night-*",
                    types: ["dev.muster.group.succeeded.v1"]))
            let secret = try #require(made.secret)
            #expect(try WebhookSecret(validating: secret).key.count == 32)
            #expect(made.enabled && made.groups == "night-*" && made.pending == 0)
            for path in ["/v1/subscriptions", "/v1/subscriptions/s"] {
                let text = String(decoding: try await coordinator.raw("GET", path).body, as: UTF8.self)
                #expect(text.contains("\"name\":\"s\"") && !text.contains("whsec_"))
            }
            let patched = try await coordinator.raw(
                "PATCH", "/v1/subscriptions/s", body: #"{"groups": null, "types": null}"#)
            let text = String(decoding: patched.body, as: UTF8.self)
            #expect(patched.status == 200 && text.contains("\"groups\":\"*\"") && text.contains("\"types\":[]"))
            #expect(!text.contains("whsec_"))
            try await client.removeSubscription("s")
            await #expect(throws: Problem.self) { try await client.subscription("s") }
        }
    }

    @Test func secretOfTheCallersOwnIsNotShownAtAll() async throws {
        try await RunningCoordinator.with { coordinator in
            let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
            let body = #"{"name": "s", "url": "http://127.0.0.1:9/", "secret": "\#(secret)"}"#
            for _ in 0..<2 {
                let answer = try await coordinator.raw("POST", "/v1/subscriptions", body: body)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(answer.status == 201 && text.contains("\"name\":\"s\"") && !text.contains("whsec_"))
            }
        }
    }

    /// The answer may be lost, and the secret that was made must not be lost with it (I10).
    @Test func repetitionIsGivenTheSecretThatWasMade() async throws {
        try await RunningCoordinator.with { coordinator in
            let request = SubscriptionRequest(name: "s", url: "http://127.0.0.1:9/")
            let first = try await coordinator.client.createSubscription(request, idempotencyKey: "once")
            let second = try await coordinator.client.createSubscription(request, idempotencyKey: "once")
            #expect(first.secret != nil && second.secret == first.secret)
            await #expect {
                try await coordinator.client.createSubscription(request, idempotencyKey: "another")
            } throws: { ($0 as? Problem)?.code == .subscriptionExists }
        }
    }

    @Test(
        arguments: [
            (#"{"name": "a b"}"#, "/name"), (#"{"name": ".."}"#, "/name"), (#"{"url": "ftp://h/"}"#, "/url"),
            (#"{"url": "http://u:p@h/"}"#, "/url"), (#"{"url": "h/hook"}"#, "/url"),
            (#"{"secret": "secret"}"#, "/secret"), (#"{"secret": "env:HOME"}"#, "/secret"),
            (#"{"groups": "a b"}"#, "/groups"), (#"{"groups": ""}"#, "/groups"), (#"{"types": ["a b"]}"#, "/types"),
            (#"{"type": []}"#, "/type"), (#"{"types": "x"}"#, "/types"),
        ])
    func invalidSubscriptionIsRefusedWithItsPointer(change: String, pointer: String) async throws {
        try await RunningCoordinator.with { coordinator in
            let body = change.dropFirst().dropLast()
            let rest = [("name", "s"), ("url", "http://h/")].filter { !change.contains("\"\($0.0)\":") }
                .map { "\"\($0.0)\": \"\($0.1)\"" }
            let json = "{" + ([String(body)] + rest).joined(separator: ", ") + "}"
            let answer = try await coordinator.raw("POST", "/v1/subscriptions", body: json)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(answer.status == 400 && text.contains("\"pointer\":\"\(pointer)\""), "\(text)")
            #expect(try await coordinator.client.subscriptions().items.isEmpty)
        }
    }

    @Test func unknownSubscriptionsAndDeliveriesAreToldApart() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            _ = try await client.createSubscription(SubscriptionRequest(name: "s", url: "http://127.0.0.1:9/"))
            func code(_ call: () async throws -> Void) async -> Problem.Code? {
                do {
                    try await call()
                    return nil
                } catch {
                    return (error as? Problem)?.code
                }
            }
            let other = SubscriptionRequest(name: "s", url: "http://127.0.0.1:10/")
            #expect(await code { _ = try await client.createSubscription(other) } == .subscriptionExists)
            #expect(await code { _ = try await client.subscription("x") } == .subscriptionNotFound)
            #expect(await code { try await client.removeSubscription("x") } == .subscriptionNotFound)
            #expect(
                await code { _ = try await client.changeSubscription("x", SubscriptionPatch(enabled: false)) }
                    == .subscriptionNotFound)
            #expect(await code { _ = try await client.deliveries(subscription: "x") } == .subscriptionNotFound)
            #expect(await code { _ = try await client.replay(delivery: 1) } == .deliveryNotFound)
            #expect(try await coordinator.raw("POST", "/v1/deliveries/x/replay").status == 404)
            #expect(try await coordinator.raw("GET", "/v1/deliveries?state=lost").status == 400)
            #expect(
                try await coordinator.raw("PATCH", "/v1/subscriptions/s", body: #"{"secret": null}"#).status == 400)
        }
    }

    @Test func listingsGoByPage() async throws {
        let receiver = try await WebhookReceiver.start()
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            for name in ["b", "a", "c"] {
                _ = try await client.createSubscription(SubscriptionRequest(name: name, url: receiver.url))
            }
            let first = try await client.subscriptions(limit: 2)
            #expect(first.items.map(\.name) == ["a", "b"] && first.next == "b")
            #expect(try await client.subscriptions(after: first.next, limit: 2).items.map(\.name) == ["c"])
            try await coordinator.makeEvents(3)
            try await coordinator.deliveries("all deliveries", state: .delivered) { $0.count == 9 }
            var seen: [DeliveryDocument] = []
            var after: String?
            repeat {
                let page = try await client.deliveries(subscription: "a", after: after, limit: 2)
                seen += page.items
                after = page.next
            } while after != nil
            #expect(seen.map(\.position) == [1, 2, 3] && seen.allSatisfy { $0.subscription == "a" })
            #expect(seen.map(\.id) == seen.map(\.id).sorted() && seen.allSatisfy { $0.deliveredAt != nil })
        }
        await receiver.stop()
    }

    @Test func workerTokensMayNotUseSubscriptions() async throws {
        let (admin, worker) = ("admin-token-0123456789", "worker-token-0123456789")
        try await RunningCoordinator.with(
            configure: { configuration in
                configuration.adminToken = admin
                configuration.workerToken = worker
            }, token: admin
        ) { coordinator in
            let paths = [
                "/v1/subscriptions", "/v1/deliveries", "/v1/consumers", "/v1/consumers/c/events", "/v1/events",
            ]
            for path in paths {
                let nobody = try await coordinator.raw("GET", path).status
                let wrong = try await coordinator.raw("GET", path, token: worker).status
                let right = try await coordinator.raw("GET", path, token: admin).status
                #expect([nobody, wrong, right] == [401, 403, 200], "\(path)")
            }
        }
    }
}
