public import MusterCore
import MusterPostgres

/// The delivery of one event to one subscription, as it is stored.
public struct DeliveryRecord: Sendable {
    /// Its number.
    public let id: Int64
    /// The subscription's name.
    public let subscription: String
    /// Where it stands.
    public let state: DeliveryState
    /// Tries since it was made or replayed.
    public let attempts: Int32
    /// When it may be tried next; `nil` when it is settled, and while its subscription is disabled.
    public let nextTryAt: Timestamp?
    /// When it was tried last.
    public let triedAt: Timestamp?
    /// The status of the last answer.
    public let status: Int32?
    /// Why the last try failed.
    public let failure: String?
    /// When it was delivered or given up.
    public let settledAt: Timestamp?
    /// The event's id.
    public let event: String
    /// The event's type.
    public let type: String
    /// The event's subject.
    public let subject: String
    /// The event's position.
    public let position: Int64

    /// Of `deliveries d`, `subscriptions s` and `events e`.
    static let columns: SQL = """
        d.id, s.name AS subscription, d.state, d.attempts,
        CASE WHEN d.state = 'pending' AND s.enabled THEN d.next_at END AS next_at,
        d.tried_at, d.status, d.failure, d.settled_at, e.id AS event, e.type, e.subject, e.position
        """

    init(_ row: PostgresRow) throws {
        id = try row.decode("id")
        subscription = try row.decode("subscription")
        state = try row.decode("state")
        attempts = try row.decode("attempts")
        nextTryAt = try row.decode("next_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        triedAt = try row.decode("tried_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        status = try row.decode("status")
        failure = try row.decode("failure")
        settledAt = try row.decode("settled_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        event = try row.decode("event")
        type = try row.decode("type")
        subject = try row.decode("subject")
        position = try row.decode("position")
    }
}

/// A delivery that was claimed: the coordinator that has it posts it once and says what became of it.
public struct ClaimedDelivery: Sendable {
    /// Its number.
    public let id: Int64
    /// The claim's: what is said under an older one changes nothing.
    public let epoch: Int64
    /// Tries before this one.
    public let attempts: Int32
    /// The subscription's name.
    public let subscription: String
    /// Where to post it.
    public let url: String
    /// What signs it, the newest first.
    public let secrets: [WebhookSecret]
    /// The moment of this try, by the database's clock (I11).
    public let moment: Timestamp
    /// What to post.
    public let event: EventRecord

    /// Of `claim_deliveries`.
    init(_ row: PostgresRow) throws {
        id = try row.decode("id")
        epoch = try row.decode("epoch")
        attempts = try row.decode("attempts")
        subscription = try row.decode("subscription")
        url = try row.decode("url")
        let previous: String? = try row.decode("previous_secret")
        secrets = try [row.decode("secret", as: String.self), previous].compactMap { $0 }.map {
            try WebhookSecret(validating: $0)
        }
        moment = Timestamp(try row.decode("moment"))
        event = EventRecord(
            position: try row.decode("event_position"), id: try row.decode("event_id"),
            type: try row.decode("event_type"), subject: try row.decode("event_subject"),
            time: Timestamp(try row.decode("event_at")), data: try row.decode("event_data"))
    }
}

/// What became of a try to deliver.
public enum DeliveryResult: Sendable, Hashable {
    /// The receiver took it.
    case delivered(status: Int32)
    /// It did not. The next try comes after `wait`, and not before `until` unless that is more than a day away; with no wait
    /// there is none, and the delivery is dead.
    case failed(status: Int32?, failure: String, wait: Duration?, until: Timestamp?)
    /// The receiver wants nothing any more: its subscription is disabled, the delivery waits.
    case gone(status: Int32, reason: String)
    /// Nothing was sent, or nobody knows: it is due again at once.
    case released
}
