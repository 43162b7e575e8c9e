import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// A receiver of webhooks that is away, slow, broken, and killed after it has acted and before it has answered (F15).
    @Suite struct ReceiverOutage {
        /// How long it is away: `MUSTER_RECEIVER_OUTAGE_SECONDS`, such as 60. The first tries come at 0 s, 5 s and 305 s.
        private static var secondsAway: Int {
            ProcessInfo.processInfo.environment["MUSTER_RECEIVER_OUTAGE_SECONDS"].flatMap { Int($0) } ?? 2
        }

        @Test func everyEventComesAtLeastOnceWithTheSameBytes() async throws {
            let first = Observed(WebhookReceiver.Answer.taken)
            let script: WebhookReceiver.Script = { $1 == 1 ? first.value : .taken }
            var receiver = try await WebhookReceiver.start(host: "127.0.0.10", script: script)
            let (url, port) = (receiver.url, receiver.port)
            var seen: [WebhookReceiver.Delivery] = []
            try await Fleet.run { fleet in
                let client = await fleet.client()
                let made = try await client.createSubscription(SubscriptionRequest(name: "s", url: url))
                let secret = try #require(made.secret)
                func happen(_ group: String) async throws {
                    _ = try await client.createGroup(GroupRequest(name: group, sealed: true))
                }

                await receiver.stop()
                try await happen("away")
                try await eventually("a try in vain") { try await client.deliveries().items.first?.attempts ?? 0 > 0 }
                try await Task.sleep(for: .seconds(Self.secondsAway))
                receiver = try await WebhookReceiver.start(host: receiver.host, port: port, script: script)
                try await receiver.wait(for: "what it has missed", limit: .seconds(Self.secondsAway < 5 ? 60 : 400)) {
                    $0.count == 1
                }

                // Longer than Muster waits for an answer.
                first.update { $0 = .late(MusterCore.Limits.webhookTimeout + .seconds(5)) }
                try await happen("late")
                try await receiver.wait(for: "the late one") { $0.count == 2 }
                first.update { $0 = .status(500) }
                try await happen("broken")
                try await receiver.wait(for: "both once more") { $0.count == 5 }

                first.update { $0 = .hang }
                try await happen("killed")
                seen = try await receiver.wait(for: "the last one") { $0.count == 6 }
                await receiver.stop()
                first.update { $0 = .taken }
                receiver = try await WebhookReceiver.start(host: receiver.host, port: port, script: script)
                seen += try await receiver.wait(for: "the last one again") { $0.count == 1 }

                try await eventually("the end of all deliveries") {
                    try await client.deliveries().items.map(\.state) == Array(repeating: .delivered, count: 4)
                }
                let tries = Dictionary(grouping: seen, by: \.id)
                let events = try await fleet.log()
                #expect(Set(tries.keys) == Set(events.map(\.id)) && events.count == 4)
                #expect(events.map { tries[$0.id]?.count } == [1, 2, 2, 2])
                for (id, same) in tries { #expect(Set(same.map(\.body)).count == 1, "\(id) came with different bytes") }
                if let python = PythonPackages.interpreter() {
                    let verdicts = try await WebhookVerifier.run(
                        seen.map { try WebhookVerifier.line($0, secret: secret) }, by: python)
                    #expect(verdicts == seen.map { "verified \($0.id); forged refused; late refused" })
                }
            }
            await receiver.stop()
        }
    }
}
