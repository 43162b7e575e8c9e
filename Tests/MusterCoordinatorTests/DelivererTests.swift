import Logging
import MusterCore
import MusterStore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// A backlog of many events that have yet to become deliveries.
@Suite struct DelivererTests {
    private static let policy: DeliveryPolicy = {
        var policy = DeliveryPolicy()
        policy.fanOuts = 2
        // No poll comes during the test: only the deliverer itself knows that there is more.
        policy.poll = .seconds(3_600)
        return policy
    }()

    private static func deliverer(_ log: LongLog, _ post: @escaping WebhookSend) -> Deliverer {
        Deliverer(
            store: log.store, post: post, bell: Bell(), door: Doorbell(), policy: policy, metrics: CoordinatorMetrics(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, random: { 0 })
    }

    private static func subscribe(_ log: LongLog, types: [String] = []) async throws {
        var generator = SeededGenerator.forTest()
        _ = try await log.store.createSubscription(
            "s", url: "http://s.test/", secret: WebhookSecret(random: &generator),
            filter: try EventFilter(groups: nil, types: types))
        try await log.fill(5_000)
    }

    @Test func deliveriesThatAreDueDoNotWaitForTheWholeBacklog() async throws {
        try await LongLog.with { log in
            try await Self.subscribe(log)
            let claimed = await Self.deliverer(log) { _ in .cancelled }.claim()
            #expect(claimed.map(\.event.position) == (1...8).map(\.self))
            #expect(try await log.store.subscription("s").position == 2_000)
        }
    }

    @Test func restOfTheBacklogIsNotForgotten() async throws {
        try await LongLog.with { log in
            try await Self.subscribe(log, types: [LongLog.lastType])
            let posted = Observed<[String]>([])
            let deliverer = Self.deliverer(log) { request in
                posted.update { $0.append(request.headers.first { $0.name == "webhook-id" }?.value ?? "") }
                return .answered(WebhookAnswer(status: 200))
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await deliverer.run() }
                let ids = try await posted.wait(for: "the last event") { !$0.isEmpty }
                #expect(ids == ["e-5000"])
                group.cancelAll()
            }
        }
    }
}
