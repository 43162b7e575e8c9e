import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Deliveries of events by real coordinators to real receivers.
    @Suite struct Webhooks {
        /// Independent programs accept what Muster sends: PyPI's `standardwebhooks` and `cloudevents`.
        @Test(.enabled(if: PythonPackages.interpreter() != nil, "deploy/test.sh installs the packages"))
        func otherPeoplesVerifierAcceptsDeliveriesAndRefusesForgedOnes() async throws {
            let python = try #require(PythonPackages.interpreter())
            let receiver = try await WebhookReceiver.start()
            try await Fleet.run { fleet in
                let client = await fleet.client()
                let made = try await client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
                let old = try #require(made.secret)
                let new = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
                let metadata = JSONValue.object(["naïve": .string("\"ü\" \u{1F600} \\ /"), "n": .number(0.1)])
                _ = try await client.createGroup(GroupRequest(name: "first", sealed: true, metadata: metadata))
                let failing = TaskRequest(urls: ["http://127.0.0.1:9/none"], path: "none")
                _ = try await client.createGroup(GroupRequest(name: "second", tasks: [failing]))
                _ = try await client.apply(.cancel, to: "second")
                try await receiver.wait(for: "the events of both groups") { $0.count >= 2 }
                _ = try await client.changeSubscription("s", SubscriptionPatch(secret: Secret(new)))
                let before = receiver.deliveries.count
                _ = try await client.createGroup(GroupRequest(name: "third", sealed: true))
                let deliveries = try await receiver.wait(for: "one more event") { $0.count > before }
                let lines = try deliveries.enumerated().flatMap { index, delivery in
                    try (index < before ? [old] : [old, new]).map { try WebhookVerifier.line(delivery, secret: $0) }
                }
                let verdicts = try await WebhookVerifier.run(lines, by: python)
                let expected = deliveries.enumerated().flatMap { index, delivery in
                    Array(
                        repeating: "verified \(delivery.id); forged refused; late refused",
                        count: index < before ? 1 : 2)
                }
                #expect(verdicts == expected)
            }
            await receiver.stop()
        }

        /// Two coordinators share the deliveries of one database; one of them is killed in the middle.
        @Test func noDeliveryIsLostWithTheCoordinatorThatMadeIt() async throws {
            let receiver = try await WebhookReceiver.start { id, attempt in
                // Slow enough for several to be under way at any time, and a few have to be tried again.
                attempt == 1 && id.hasSuffix("7-1-succeeded") ? .status(500) : .late(.milliseconds(30))
            }
            try await Fleet.run(coordinators: 2) { fleet in
                let coordinators = await fleet.coordinators
                let survivor = await fleet.client(of: [coordinators[1].url])
                _ = try await survivor.createSubscription(SubscriptionRequest(name: "s", url: receiver.url))
                let count = 150
                for number in 0..<count {
                    _ = try await survivor.createGroup(GroupRequest(name: "g\(number)", sealed: true))
                    if number == count / 2 {
                        try await receiver.wait(for: "deliveries") { $0.count > 20 }
                        try await fleet.kill(coordinators[0].process)
                    }
                }
                let delivered = try await eventually("all deliveries") { () -> [DeliveryDocument]? in
                    let items = try await survivor.deliveries(state: .delivered, limit: 1_000).items
                    return items.count == count ? items : nil
                }
                let events = try await survivor.events(after: 0, limit: 1_000).items
                #expect(Set(delivered.map(\.event)) == Set(events.map(\.id)) && events.count == count)
                // A 500 and its retry are two tries; a delivery that was under way when its coordinator died is sent again.
                let seen = Dictionary(grouping: receiver.deliveries, by: \.id)
                #expect(Set(seen.keys) == Set(events.map(\.id)))
                let again = seen.values.reduce(0) { $0 + $1.filter { $0.answer != .status(500) }.count - 1 }
                #expect(again <= 8, "\(again) deliveries came again")
                for (id, tries) in seen {
                    #expect(Set(tries.map(\.body)).count == 1, "\(id) came with different bytes")
                }
            }
            await receiver.stop()
        }

        /// A subscription gives no access to private addresses of the coordinator's network.
        @Test func privateAddressIsRefusedUnlessItIsAllowed() async throws {
            let receiver = try await WebhookReceiver.start()
            for (options, isAllowed) in [
                (["--guard-addresses"], false), (["--guard-addresses", "--allow-address", "127.0.0.0/8"], true),
            ] {
                try await Fleet.run(options: options) { fleet in
                    let client = await fleet.client()
                    let before = receiver.deliveries.count
                    let urls = [receiver.url, receiver.url.replacing("127.0.0.1", with: "localhost")]
                    for (index, url) in urls.enumerated() {
                        _ = try await client.createSubscription(SubscriptionRequest(name: "s\(index)", url: url))
                    }
                    _ = try await client.createGroup(GroupRequest(name: "g", sealed: true))
                    let tried = try await eventually("both tries") { () -> [DeliveryDocument]? in
                        let items = try await client.deliveries().items
                        return items.count == 2 && items.allSatisfy { $0.attempts > 0 } ? items : nil
                    }
                    #expect(tried.allSatisfy { ($0.state == .delivered) == isAllowed })
                    let refusals = tried.filter { $0.failure?.hasPrefix("refused address") == true }
                    #expect(refusals.count == (isAllowed ? 0 : 2), "\(tried.map(\.failure))")
                    #expect(receiver.deliveries.count - before == (isAllowed ? 2 : 0))
                }
            }
            await receiver.stop()
        }
    }
}
