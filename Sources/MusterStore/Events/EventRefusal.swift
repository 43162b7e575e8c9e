/// Why a request about events, their readers or their subscribers can't be fulfilled as things stand.
public enum EventRefusal: Error, Sendable, Hashable {
    /// Events after this position have been dropped; the oldest that is kept stands at `oldest`.
    case gone(oldest: Int64)
    /// The log ends at `last`: nobody can have dealt with what comes after.
    case beyondEnd(last: Int64)
    /// The reader's place is of another log: the database has lost what came last, and positions recur (adr/0022).
    case otherLog
    /// There is no consumer of this name.
    case noSuchConsumer(String)
    /// There are as many consumers as there may be.
    case tooManyConsumers
    /// Another process deals with the consumer's events.
    case consumerHeld(String)
    /// There is no subscription of this name.
    case noSuchSubscription(String)
    /// A subscription of this name exists, and means something else.
    case subscriptionExists(String)
    /// There are as many subscriptions as there may be.
    case tooManySubscriptions
    /// There is no such delivery.
    case noSuchDelivery(Int64)
}
