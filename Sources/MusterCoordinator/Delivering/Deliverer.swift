import Logging
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Delivers events to subscriptions. Every coordinator delivers, and each delivery belongs to one coordinator at a time. An
/// event counts as delivered when its receiver has confirmed it, and is tried until then or until its schedule is over
/// (I9).
actor Deliverer: Service {
    private let store: Store
    private let post: WebhookSend
    private let bell: Bell
    private let door: Doorbell
    private let policy: DeliveryPolicy
    private let metrics: CoordinatorMetrics
    private let logger: Logger
    private let random: @Sendable () -> Double
    /// Rung when the deliveries under way have no time left.
    private let hurry = Bell()
    private var underWay: Int32 = 0

    /// - Parameters:
    ///   - bell: rung when the log has grown.
    ///   - door: rung when a delivery may be due.
    ///   - random: from 0 to less than 1, for the jitter.
    init(
        store: Store, post: @escaping WebhookSend, bell: Bell, door: Doorbell, policy: DeliveryPolicy,
        metrics: CoordinatorMetrics, logger: Logger, random: @escaping @Sendable () -> Double
    ) {
        self.store = store
        self.post = post
        self.bell = bell
        self.door = door
        self.policy = policy
        self.metrics = metrics
        self.logger = logger
        self.random = random
    }

    /// Delivers until the coordinator stops. Deliveries under way then get `DeliveryPolicy.patience` to finish; after that
    /// they are released to be claimed again.
    func run() async {
        await withGracefulShutdownHandler {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await self.deliverUntilStopped() }
                group.addTask { [bell, door, policy] in
                    while !Task.isCancelled {
                        let rings = bell.rings
                        door.ring()
                        await bell.wait(since: rings, limit: policy.poll, clock: .continuous)
                    }
                }
                group.addTask { [hurry, policy] in
                    // Ends when the shutdown begins.
                    try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(1_000_000_000)) }
                    try? await Task.sleep(for: policy.patience)
                    hurry.ring()
                    // The first of these tasks to end ends the others.
                    try? await Task.sleep(for: .seconds(1_000_000_000))
                }
                await group.next()
                group.cancelAll()
            }
        } onGracefulShutdown: { [door] in
            door.finish()
        }
    }

    private func deliverUntilStopped() async {
        await withDiscardingTaskGroup { group in
            for await _ in door.rings {
                for delivery in await claim() {
                    group.addTask { await self.deliver(delivery) }
                }
            }
        }
    }

    /// Claims the deliveries that are due now, as many as may be under way.
    ///
    /// A subscription that is far behind does not hold up the others: the rest of its backlog comes after the next claim.
    func claim() async -> [ClaimedDelivery] {
        do {
            var calls = 0
            while calls < policy.fanOuts, try await store.fanOutEvents() { calls += 1 }
            if calls == policy.fanOuts { door.ring() }
            let claimed = try await store.claimDeliveries(
                limit: policy.concurrency - underWay, hold: policy.timeout + policy.claimMargin)
            underWay += Int32(claimed.count)
            return claimed
        } catch {
            logger.warning("deliveries not claimed", metadata: [CoordinatorMetadata.error: "\(error)"])
            return []
        }
    }

    private func deliver(_ delivery: ClaimedDelivery) async {
        do {
            let outcome = await outcome(of: try WebhookRequest(delivery, timeout: policy.timeout))
            let result = DeliveryResult(
                outcome, failures: delivery.attempts, schedule: policy.schedule, random: random())
            if try await store.settle(delivery, as: result) { tell(result, of: delivery) }
        } catch {
            // The delivery is due again when its claim has expired.
            logger.warning(
                "delivery not settled",
                metadata: [
                    CoordinatorMetadata.subscription: "\(delivery.subscription)", CoordinatorMetadata.error: "\(error)",
                ])
        }
        underWay -= 1
        // Another delivery may be due for the free place.
        door.ring()
    }

    /// Posts the request. Returns `.cancelled` when `hurry` rings or the time of the claim is over.
    private func outcome(of request: WebhookRequest) async -> WebhookOutcome {
        await withTaskGroup(of: WebhookOutcome.self) { group in
            group.addTask { [post, metrics] in await metrics.time(.deliveries) { await post(request) } }
            group.addTask { [hurry, policy] in
                await hurry.wait(since: 0, limit: policy.timeout + policy.claimMargin, clock: .continuous)
                return .cancelled
            }
            defer { group.cancelAll() }
            return await group.next() ?? .cancelled
        }
    }

    private func tell(_ result: DeliveryResult, of delivery: ClaimedDelivery) {
        let metadata: Logger.Metadata = [
            CoordinatorMetadata.subscription: "\(delivery.subscription)",
            CoordinatorMetadata.event: "\(delivery.event.id)",
        ]
        switch result {
        case .delivered: metrics.add(.eventsDelivered)
        case .released: break
        case .gone:
            metrics.add(.deliveriesFailed)
            logger.warning("subscription disabled: its receiver is gone", metadata: metadata)
        case .failed(_, _, let wait, _):
            metrics.add(.deliveriesFailed)
            guard wait == nil else { return }
            metrics.add(.deliveriesDead)
            logger.warning("delivery given up", metadata: metadata)
        }
    }
}
