public import MusterCore

/// A named reader of the log, whose place is kept.
public struct ConsumerDocument: Hashable, Sendable, Codable {
    /// Its name, by the rule of names.
    public var name: String
    /// Every event up to here has been acknowledged.
    public var position: Int64
    /// Positions of the log behind its place, of all groups and types.
    public var behind: Int64
    /// When its place moved last.
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
    /// Every event up to here has been dealt with: the position of an event, or the `next` of an answer whose events all have.
    public var position: Int64

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case position
    }

    /// An acknowledgement.
    public init(position: Int64) {
        self.position = position
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
    }
}
