/// How a source is asked: the rungs of the ladder, the cheapest first (`docs/range-contract.md`, "The ladder").
///
/// The database compares them too: their names are in the order of the alphabet.
public enum Rung: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
    /// Ranges of one representation, several at a time.
    case chunks
    /// One request for everything from the first byte that is missing, which a later one can go on from.
    case stream
    /// One plain GET of the whole file, without Range and If-Range. What is left of a broken one is of no use to the next.
    case whole

    /// The cheaper rung comes first.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The rung below; `nil` for the last one.
    public var next: Rung? {
        switch self {
        case .chunks: .stream
        case .stream: .whole
        case .whole: nil
        }
    }

    /// What a request on this rung is called in a failure.
    var request: String {
        switch self {
        case .chunks: "with a range"
        case .stream: "with a range up to the end"
        case .whole: "without a range"
        }
    }
}
