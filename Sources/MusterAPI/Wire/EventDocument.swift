public import MusterCore

/// An entry of the durable log as a CloudEvent 1.0 in the JSON format.
public struct EventDocument: Hashable, Sendable, Codable {
    /// The version of the CloudEvents specification.
    public var specversion: String
    /// Deterministic: the same fact always has the same id (I9), such as `grp-7-1-succeeded`.
    public var id: String
    /// `/muster`.
    public var source: String
    /// Such as `dev.muster.group.succeeded.v1`.
    public var type: String
    /// `groups/<name>`.
    public var subject: String
    /// When it happened, by the database's clock.
    public var time: Timestamp
    /// The position in the log, zero-padded to 20 digits so that texts sort as numbers do.
    public var sequence: String
    /// `application/json`.
    public var datacontenttype: String
    /// The facts.
    public var data: JSONValue

    /// An event at a position of the log.
    public init(id: String, type: String, subject: String, time: Timestamp, position: Int64, data: JSONValue) {
        specversion = "1.0"
        self.id = id
        source = "/muster"
        self.type = type
        self.subject = subject
        self.time = time
        let digits = String(position)
        sequence = String(repeating: "0", count: max(0, 20 - digits.count)) + digits
        datacontenttype = "application/json"
        self.data = data
    }

    /// The position in the log; what a reader passes as `after=`.
    public var position: Int64 { Int64(sequence) ?? 0 }
}

/// A stretch of the log: the answer of `GET /v1/events`.
public struct EventsDocument: Hashable, Sendable, Codable {
    /// The events, positions ascending.
    public var items: [EventDocument]
    /// The position up to which the log was read: what to pass as `after=` next.
    public var next: Int64

    /// A stretch.
    public init(items: [EventDocument], next: Int64) {
        self.items = items
        self.next = next
    }
}
