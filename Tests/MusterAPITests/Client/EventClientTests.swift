import MusterAPI
import MusterCore
import Testing

private let server = "http://one:7300"
private let consumer =
    #"{"acknowledgedAt":"2026-01-02T03:04:05.000006Z","behind":3,"name":"indexer","position":7}"#
private let subscription =
    #"{"createdAt":"2026-01-02T03:04:05.000006Z","dead":1,"disabledReason":null,"enabled":true,"groups":"*","name":"ci","#
    + #""pending":2,"position":9,"previousSecretUntil":null,"types":[],"url":"https://h/hook"}"#
private let delivery =
    #"{"attempts":2,"deliveredAt":null,"event":"grp-7-1-failed","failure":"status 500","id":17,"nextTryAt":null,"#
    + #""position":9,"state":"dead","status":500,"subject":"groups/g","subscription":"ci","triedAt":null,"#
    + #""type":"dev.muster.group.failed.v1"}"#

private func page(_ item: String) -> String { #"{"items":["# + item + #"],"next":"z"}"# }

/// The typed client's requests for the event log, its consumers, subscriptions and deliveries.
struct EventClientTests {
    /// Asks a server that answers with `answer`. Returns the request line, the body and the result.
    private func ask<Result: Sendable>(
        _ answer: String, status: Int = 200, _ call: (MusterClient) async throws -> Result
    ) async throws -> (line: String, body: String?, result: Result) {
        let script = Script([server: .answer(status, answer)])
        let result = try await call(script.client([server]))
        let request = try #require(script.requests.last)
        return ("\(request.method) \(request.url.dropFirst(server.utf8.count))", script.body, result)
    }

    @Test func consumerReadsFromItsPlaceAndMovesIt() async throws {
        let event =
            #"{"data":{},"datacontenttype":"application/json","id":"grp-7-1-failed","sequence":"00000000000000000009","#
            + #""source":"/muster","specversion":"1.0","subject":"groups/g","time":"2026-01-02T03:04:05.000006Z","#
            + #""type":"dev.muster.group.failed.v1"}"#
        let read = try await ask(#"{"items":["# + event + #"],"next":12,"log":"l"}"#) {
            try await $0.consumerEvents(
                "indexer", limit: 5, wait: .seconds(20), groups: "night-*", types: ["a.v1", "b.v1"])
        }
        #expect(
            read.line == "GET /v1/consumers/indexer/events?limit=5&wait=20000ms&groups=night-%2A&types=a.v1%2Cb.v1")
        #expect(read.result.items.map(\.position) == [9] && read.result.next == 12)
        let plain = try await ask(#"{"items":[],"next":0,"log":"l"}"#) { try await $0.consumerEvents("indexer") }
        #expect(plain.line == "GET /v1/consumers/indexer/events")

        let moved = try await ask(consumer) { try await $0.acknowledge(12, consumer: "indexer") }
        #expect(moved.line == "POST /v1/consumers/indexer/ack" && moved.body == #"{"position":12}"#)
        #expect(moved.result.position == 7 && moved.result.behind == 3)
    }

    /// The timeout of a long poll is its wait plus the time that an answer may take.
    @Test(arguments: [(nil, Duration.seconds(30)), (.seconds(20), .seconds(50))] as [(Duration?, Duration)])
    func timeoutIncludesTheWait(_ wait: Duration?, _ timeout: Duration) async throws {
        let script = Script([server: .answer(200, #"{"items":[],"next":0,"log":"l"}"#)])
        _ = try await script.client([server]).consumerEvents("c", wait: wait)
        _ = try await script.client([server]).events(after: 3, wait: wait)
        #expect(script.requests.map(\.timeout) == [timeout, timeout])
    }

    @Test func consumersAreListedAndForgotten() async throws {
        let listed = try await ask(page(consumer)) { try await $0.consumers(after: "a b", limit: 2) }
        #expect(listed.line == "GET /v1/consumers?after=a%20b&limit=2")
        #expect(listed.result.items.map(\.name) == ["indexer"] && listed.result.next == "z")
        let removed = try await ask("", status: 204) { try await $0.removeConsumer("indexer") }
        #expect(removed.line == "DELETE /v1/consumers/indexer")
    }

    @Test func creationOfASubscriptionCarriesItsIdempotencyKey() async throws {
        let script = Script([server: .answer(201, subscription)])
        let request = SubscriptionRequest(name: "ci", url: "https://h/hook")
        _ = try await script.client([server]).createSubscription(request, idempotencyKey: "i-1")
        #expect(script.requests.last?.headers.first { $0.name == "Idempotency-Key" }?.value == "i-1")
    }

    @Test func subscriptionIsCreatedWithTheGivenFieldsAlone() async throws {
        let secret = "whsec_" + String(repeating: "A", count: 32)
        let answer = subscription.dropLast() + #","secret":"\#(secret)"}"#
        let made = try await ask(String(answer), status: 201) {
            try await $0.createSubscription(
                SubscriptionRequest(name: "ci", url: "https://h/hook", secret: Secret(secret), types: ["a.v1"]))
        }
        #expect(made.line == "POST /v1/subscriptions" && made.result.secret == secret)
        let body = try document(SubscriptionRequest.self, try #require(made.body))
        #expect(body.secret?.given == secret && body.types == ["a.v1"] && body.groups == nil)
        let least = try await ask(subscription, status: 201) {
            try await $0.createSubscription(SubscriptionRequest(name: "ci", url: "https://h/hook"))
        }
        let said = try document([String: String].self, try #require(least.body))
        #expect(said == ["name": "ci", "url": "https://h/hook"])
        #expect(least.result.secret == nil)
    }

    @Test func subscriptionsAreReadChangedAndRemovedByName() async throws {
        let read = try await ask(subscription) { try await $0.subscription("ci") }
        #expect(read.line == "GET /v1/subscriptions/ci" && read.result.dead == 1 && read.result.enabled)
        let listed = try await ask(page(subscription)) { try await $0.subscriptions(after: "b") }
        #expect(listed.line == "GET /v1/subscriptions?after=b" && listed.result.items == [read.result])
        let changed = try await ask(subscription) {
            try await $0.changeSubscription("ci", SubscriptionPatch(enabled: false))
        }
        #expect(changed.line == "PATCH /v1/subscriptions/ci" && changed.body == #"{"enabled":false}"#)
        let removed = try await ask("", status: 204) { try await $0.removeSubscription("ci") }
        #expect(removed.line == "DELETE /v1/subscriptions/ci")
    }

    @Test func deliveriesAreListedByStateAndReplayedByNumber() async throws {
        let all = try await ask(page(delivery)) { try await $0.deliveries() }
        #expect(all.line == "GET /v1/deliveries" && all.result.items[0].failure == "status 500")
        let dead = try await ask(page(delivery)) {
            try await $0.deliveries(state: .dead, subscription: "ci", after: "16", limit: 1)
        }
        #expect(dead.line == "GET /v1/deliveries?state=dead&subscription=ci&after=16&limit=1")
        #expect(dead.result.items.map(\.id) == [17] && dead.result.next == "z")
        let replayed = try await ask(delivery, status: 202) { try await $0.replay(delivery: 17) }
        #expect(replayed.line == "POST /v1/deliveries/17/replay" && replayed.body == nil)
        #expect(replayed.result.event == "grp-7-1-failed")
    }

    @Test func expiredEventsAreReportedByTheirCode() async throws {
        let script = Script([server: .problem(Problem(.eventsGone, "the log begins at 9"))])
        await #expect { try await script.client([server]).consumerEvents("c") } throws: {
            ($0 as? Problem)?.code == .eventsGone
        }
    }
}
