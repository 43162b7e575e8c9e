public import MusterCore
import MusterPostgres

/// The delivery of one event to one subscription, as it is stored.
public struct DeliveryRecord: Sendable {
    /// Its number.
    public let id: Int64
    /// The subscription's name.
    public let subscription: String
    /// Its state.
    public let state: DeliveryState
    /// The number of tries since it was created or replayed.
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

    /// Columns of `deliveries d`, `subscriptions s` and `events e`.
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
        nextTryAt = try row.moment("next_at")
        triedAt = try row.moment("tried_at")
        status = try row.decode("status")
        failure = try row.decode("failure")
        settledAt = try row.moment("settled_at")
        event = try row.decode("event")
        type = try row.decode("type")
        subject = try row.decode("subject")
        position = try row.decode("position")
    }
}

/// A claimed delivery. The coordinator that holds the claim posts it once and reports the result.
public struct ClaimedDelivery: Sendable {
    /// Its number.
    public let id: Int64
    /// The epoch of the claim: a result reported under an older epoch changes nothing.
    public let epoch: Int64
    /// Tries before this one.
    public let attempts: Int32
    /// The subscription's name.
    public let subscription: String
    /// Where to post it.
    public let url: String
    /// The secrets that sign it, the newest first.
    public let secrets: [WebhookSecret]
    /// The time of this try, by the database's clock (I11).
    public let moment: Timestamp
    /// What to post.
    public let event: EventRecord

    /// Reads a row of `claim_deliveries`.
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

/// The result of a try to deliver.
public enum DeliveryResult: Sendable, Hashable {
    /// The receiver took it.
    case delivered(status: Int32)
    /// The receiver did not take it. The next try comes after `wait`, and not before `until` unless that is more than a day
    /// away. Without a wait there is no further try, and the delivery is dead.
    case failed(status: Int32?, failure: String, wait: Duration?, until: Timestamp?)
    /// The receiver wants no more events: its subscription is disabled, and the delivery waits.
    case gone(status: Int32, reason: String)
    /// Nothing was sent, or it is not known whether it was: the delivery is due again at once.
    case released
}
