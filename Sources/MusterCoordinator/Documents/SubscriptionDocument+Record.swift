import MusterAPI
import MusterCore
import MusterStore

extension SubscriptionDocument {
    /// A subscription as it is shown; `secret` is a generated secret, which only the answer to the creation shows.
    init(_ record: SubscriptionRecord, secret: String? = nil) {
        self.init(name: record.name, url: record.url, position: record.position, createdAt: record.createdAt)
        if let groups = record.groups { self.groups = groups }
        types = record.types
        enabled = record.isEnabled
        disabledReason = record.disabledReason
        self.secret = secret
        previousSecretUntil = record.previousUntil
        pending = record.pending
        dead = record.dead
    }
}

extension DeliveryDocument {
    /// A delivery as it is shown. A failure that was overcome is not shown any more.
    init(_ record: DeliveryRecord) {
        self.init(
            id: record.id, subscription: record.subscription, state: record.state, event: record.event,
            type: record.type, subject: record.subject, position: record.position)
        attempts = record.attempts
        nextTryAt = record.nextTryAt
        triedAt = record.triedAt
        status = record.status
        failure = record.failure
        deliveredAt = record.state == .delivered ? record.settledAt : nil
    }
}

extension Problem {
    /// The problem that describes a refusal about events.
    init(_ refusal: EventRefusal) {
        switch refusal {
        case .gone(let oldest):
            self.init(
                .eventsGone, "the oldest event that is kept stands at \(oldest); what was before is gone",
                oldest: oldest)
        case .beyondEnd(let last):
            self.init(.conflict, "the log ends at \(last)", pointer: "/position")
        case .otherLog:
            self.init(.otherLog, "the database has lost what came last in the log, and gives its positions out again")
        case .noSuchConsumer(let name): self.init(.consumerNotFound, "there is no consumer \"\(name)\"")
        case .tooManyConsumers:
            self.init(.conflict, "there are \(Limits.consumers) consumers, and may be no more; remove some")
        case .consumerHeld(let name):
            self.init(.conflict, "another process deals with the events of the consumer \"\(name)\"")
        case .noSuchSubscription(let name): self.init(.subscriptionNotFound, "there is no subscription \"\(name)\"")
        case .subscriptionExists(let name):
            self.init(
                .subscriptionExists,
                "there is a subscription \"\(name)\" already; remove it first, or give another name",
                pointer: "/name")
        case .tooManySubscriptions:
            self.init(.conflict, "there are \(Limits.subscriptions) subscriptions, and may be no more; remove some")
        case .noSuchDelivery(let id): self.init(.deliveryNotFound, "there is no delivery \(id), or not any more")
        }
    }
}
