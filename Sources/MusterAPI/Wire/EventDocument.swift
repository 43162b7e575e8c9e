import FoundationEssentials
public import MusterCore

/// An entry of the durable log as a CloudEvent 1.0 in the JSON format.
public struct EventDocument: Hashable, Sendable {
    /// The version of the CloudEvents specification.
    public var specversion: String
    /// Deterministic: the same fact always has the same id (I9), such as `grp-7-1-succeeded`; with a mark at its end after a failover or a restore (adr/0022).
    public var id: String
    /// `/muster`.
    public var source: String
    /// The type: one of `EventType`, or a type of a later version.
    public var type: String
    /// `groups/<name>`.
    public var subject: String
    /// When it happened, by the database's clock.
    public var time: Timestamp
    /// The position in the log; what a reader passes as `after=`.
    public var position: Int64
    /// `application/json`.
    public var datacontenttype: String
    /// The facts as they came, complete even if an event is passed on. `payload()` has them by name.
    public var data: JSONValue

    /// An event at a position of the log.
    public init(id: String, type: String, subject: String, time: Timestamp, position: Int64, data: JSONValue) {
        specversion = "1.0"
        self.id = id
        source = "/muster"
        self.type = type
        self.subject = subject
        self.time = time
        self.position = position
        datacontenttype = "application/json"
        self.data = data
    }

    /// The position in its written form: zero-padded to 20 digits so that texts sort as numbers do.
    public var sequence: String {
        let digits = String(position)
        return String(repeating: "0", count: max(0, 20 - digits.count)) + digits
    }

    /// The type; `nil` for a type of a later version.
    public var knownType: EventType? { EventType(rawValue: type) }

    /// The facts, read strictly; `nil` for an event of a type of a later version, which readers skip.
    ///
    /// - Throws: `DecodingError` when the facts are not those of the type.
    public func payload() throws -> EventPayload? {
        guard knownType != nil else { return nil }
        return try JSONDecoder().decode(EventPayload.self, from: JSONEncoder().encode(self))
    }
}

extension EventDocument: Codable {
    private enum CodingKeys: CodingKey {
        case specversion, id, source, type, subject, time, sequence, datacontenttype, data
    }

    /// Reads an event; refuses a `sequence` that is not a position.
    public init(from decoder: any Decoder) throws {
        let event = try decoder.container(keyedBy: CodingKeys.self)
        specversion = try event.decode(String.self, forKey: .specversion)
        id = try event.decode(String.self, forKey: .id)
        source = try event.decode(String.self, forKey: .source)
        type = try event.decode(String.self, forKey: .type)
        subject = try event.decode(String.self, forKey: .subject)
        time = try event.decode(Timestamp.self, forKey: .time)
        guard let position = Int64(try event.decode(String.self, forKey: .sequence)), position >= 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .sequence, in: event, debugDescription: "must be a position of the log")
        }
        self.position = position
        datacontenttype = try event.decode(String.self, forKey: .datacontenttype)
        data = try event.decode(JSONValue.self, forKey: .data)
    }

    /// Writes the position as `sequence`.
    public func encode(to encoder: any Encoder) throws {
        var event = encoder.container(keyedBy: CodingKeys.self)
        try event.encode(specversion, forKey: .specversion)
        try event.encode(id, forKey: .id)
        try event.encode(source, forKey: .source)
        try event.encode(type, forKey: .type)
        try event.encode(subject, forKey: .subject)
        try event.encode(time, forKey: .time)
        try event.encode(sequence, forKey: .sequence)
        try event.encode(datacontenttype, forKey: .datacontenttype)
        try event.encode(data, forKey: .data)
    }
}

/// A section of the log: the answer of `GET /v1/events`.
public struct EventsDocument: Hashable, Sendable, Codable {
    /// The events, positions ascending.
    public var items: [EventDocument]
    /// The position up to which the log was read: what to pass as `after=` next.
    public var next: Int64
    /// The log's name. It changes when the database has lost the latest events, and assigns their positions again (adr/0022).
    public var log: String

    /// A section of the log.
    public init(items: [EventDocument], next: Int64, log: String) {
        self.items = items
        self.next = next
        self.log = log
    }
}
