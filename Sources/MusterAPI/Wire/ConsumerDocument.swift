public import MusterCore

/// A named reader of the log, whose place is kept.
public struct ConsumerDocument: Hashable, Sendable, Codable {
    /// Its name, by the rule of names.
    public var name: String
    /// Every event up to here has been acknowledged.
    public var position: Int64
    /// How many positions the log has after the consumer's place, of all groups and types.
    public var behind: Int64
    /// When the consumer's place last moved.
    public var acknowledgedAt: Timestamp

    /// A consumer's document.
    public init(name: String, position: Int64, behind: Int64, acknowledgedAt: Timestamp) {
        self.name = name
        self.position = position
        self.behind = behind
        self.acknowledgedAt = acknowledgedAt
    }
}

/// The body of `POST /v1/consumers/{name}/ack`.
public struct AcknowledgementRequest: Hashable, Sendable, Codable {
    /// Every event up to this position has been processed. It is the position of an event, or the `next` of an answer all of whose events are processed.
    public var position: Int64
    /// The log that the position belongs to, as named in the answer with the events; for another log the request is refused.
    public var log: String?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case position, log
    }

    /// An acknowledgement.
    public init(position: Int64, log: String? = nil) {
        self.position = position
        self.log = log
    }

    /// Reads an acknowledgement; refuses unknown fields and positions before the log.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        guard let position = try container.integerIfPresent(Int64.self, forKey: .position) else {
            throw DecodingError.keyNotFound(
                CodingKeys.position,
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "is missing"))
        }
        guard position >= 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .position, in: container, debugDescription: "must not be negative")
        }
        self.position = position
        log = try container.decodeIfPresent(String.self, forKey: .log)
    }
}

/// The body of `PUT /v1/consumers/{name}/holder`.
public struct ConsumerHoldRequest: Hashable, Sendable, Codable {
    /// The name of the process that handles the consumer's events: random, so that it is unique.
    public var holder: String
    /// How long the hold lasts without being renewed, in whole seconds.
    public var seconds: Int64

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case holder, seconds
    }

    /// A request to hold a consumer.
    public init(holder: String, seconds: Int64) {
        self.holder = holder
        self.seconds = seconds
    }

    /// Reads the request; refuses unknown fields and values out of bounds.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        holder = try container.decode(String.self, forKey: .holder)
        seconds = try container.decode(Int64.self, forKey: .seconds)
        guard (1...Limits.holderBytes).contains(holder.utf8.count) else {
            throw DecodingError.dataCorruptedError(
                forKey: .holder, in: container, debugDescription: "must be 1 to \(Limits.holderBytes) bytes")
        }
        guard Limits.consumerHoldSeconds.contains(seconds) else {
            throw DecodingError.dataCorruptedError(
                forKey: .seconds, in: container,
                debugDescription: "must be within \(Limits.consumerHoldSeconds)")
        }
    }
}

/// The answer to a request to hold a consumer.
public struct ConsumerHoldDocument: Hashable, Sendable, Codable {
    /// The consumer's name.
    public var name: String
    /// When the hold ends unless it is renewed, by the database's clock.
    public var until: Timestamp

    /// A hold.
    public init(name: String, until: Timestamp) {
        self.name = name
        self.until = until
    }
}
