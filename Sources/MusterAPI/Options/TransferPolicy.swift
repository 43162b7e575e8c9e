public import MusterCore

/// A group's settings for cases in which origins and files leave a choice.
public struct TransferPolicy: Hashable, Sendable, Codable {
    /// What happens to a task whose destination already holds a file; `verify` when absent.
    public var ifExists: ExistingFileRule?
    /// Which differences of validators mean that the content changed; `strict` when absent (range contract, row 11).
    public var validators: ValidatorRule?
    /// Whether content without any validator or digest may still be fetched in chunks (row 12).
    public var chunksWithoutValidator: Bool?
    /// Whether a body whose end is marked only by the end of its connection counts as complete at the first read. Otherwise it is read
    /// until two reads agree (row 14).
    public var acceptUnframed: Bool?
    /// Whether a finished file gets the origin's Last-Modified as its modification time.
    public var keepModificationTime: Bool?
    /// Where the last segment of a path comes from; `given` when absent (row 34).
    public var names: NameSource?
    /// Digests to compute and record besides those that are expected.
    public var computeDigests: [DigestAlgorithm]?
    /// Whether the origin is asked about files that the sink has already, which are then used instead of fetching the same content again,
    /// and whether this group's files are available for that; both when absent.
    public var reuse: Bool?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case ifExists, validators, chunksWithoutValidator, acceptUnframed, keepModificationTime, names, computeDigests,
            reuse
    }

    /// The defaults.
    public init() {}

    /// Reads a policy and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        ifExists = try container.decodeIfPresent(ExistingFileRule.self, forKey: .ifExists)
        validators = try container.decodeIfPresent(ValidatorRule.self, forKey: .validators)
        chunksWithoutValidator = try container.decodeIfPresent(Bool.self, forKey: .chunksWithoutValidator)
        acceptUnframed = try container.decodeIfPresent(Bool.self, forKey: .acceptUnframed)
        keepModificationTime = try container.decodeIfPresent(Bool.self, forKey: .keepModificationTime)
        names = try container.decodeIfPresent(NameSource.self, forKey: .names)
        computeDigests = try container.decodeIfPresent([DigestAlgorithm].self, forKey: .computeDigests)
        reuse = try container.decodeIfPresent(Bool.self, forKey: .reuse)
        if let computeDigests, Set(computeDigests).count != computeDigests.count {
            throw DecodingError.dataCorruptedError(
                forKey: .computeDigests, in: container, debugDescription: "names an algorithm twice")
        }
    }
}
