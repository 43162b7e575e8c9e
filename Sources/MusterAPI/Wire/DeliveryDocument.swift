public import MusterCore

/// The delivery of one event to one subscription, as `GET /v1/deliveries` shows it.
public struct DeliveryDocument: Hashable, Sendable, Codable {
    /// The delivery's number, by which it is replayed.
    public var id: Int64
    /// The subscription's name.
    public var subscription: String
    /// Its state.
    public var state: DeliveryState
    /// The id of the event, which is the `webhook-id` of every try.
    public var event: String
    /// The event's type.
    public var type: String
    /// The event's subject, `groups/<name>`.
    public var subject: String
    /// The event's position in the log.
    public var position: Int64
    /// How often it was tried since it was created or replayed.
    public var attempts: Int32 = 0
    /// When it is tried next; `null` if it is settled, or pending while its subscription is disabled.
    public var nextTryAt: Timestamp?
    /// When it was last tried.
    public var triedAt: Timestamp?
    /// The status of the receiver's last answer; `null` when there was none.
    public var status: Int32?
    /// Why the last try failed, in words.
    public var failure: String?
    /// When the receiver accepted it.
    public var deliveredAt: Timestamp?

    /// A delivery that has not been tried yet.
    public init(
        id: Int64, subscription: String, state: DeliveryState, event: String, type: String, subject: String,
        position: Int64
    ) {
        self.id = id
        self.subscription = subscription
        self.state = state
        self.event = event
        self.type = type
        self.subject = subject
        self.position = position
    }

    /// Writes every field, absent ones as `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        try container.encode(subscription, forKey: .subscription)
        try container.encode(state, forKey: .state)
        try container.encode(event, forKey: .event)
        try container.encode(type, forKey: .type)
        try container.encode(subject, forKey: .subject)
        try container.encode(position, forKey: .position)
        try container.encode(attempts, forKey: .attempts)
        try container.encode(nextTryAt, forKey: .nextTryAt)
        try container.encode(triedAt, forKey: .triedAt)
        try container.encode(status, forKey: .status)
        try container.encode(failure, forKey: .failure)
        try container.encode(deliveredAt, forKey: .deliveredAt)
    }
}
