/// Why a request about events, their readers or their subscribers can't be fulfilled in the present state.
public enum EventRefusal: Error, Sendable, Hashable {
    /// Events after the reader's position have been dropped. `oldest` is the position of the oldest event that is kept.
    case gone(oldest: Int64)
    /// The position is beyond the end of the log, which is `last`: no reader can have processed it.
    case beyondEnd(last: Int64)
    /// The reader's place belongs to another log: the database has lost its latest changes, and positions are reused
    /// (adr/0022).
    case otherLog
    /// There is no consumer of this name.
    case noSuchConsumer(String)
    /// There are as many consumers as allowed.
    case tooManyConsumers
    /// Another process holds the consumer.
    case consumerHeld(String)
    /// There is no subscription of this name.
    case noSuchSubscription(String)
    /// A subscription of this name exists with other settings.
    case subscriptionExists(String)
    /// There are as many subscriptions as allowed.
    case tooManySubscriptions
    /// There is no delivery with this number.
    case noSuchDelivery(Int64)
}
