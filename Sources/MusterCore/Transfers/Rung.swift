/// How a source is asked: the rungs of the ladder, the cheapest first (`docs/range-contract.md`, "The ladder").
///
/// The database compares rungs by name, so the names are in alphabetical order.
public enum Rung: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
    /// Ranges of one representation, several at a time.
    case chunks
    /// One request for everything from the first missing byte on, which a later request can resume.
    case stream
    /// One plain GET of the whole file, without Range and If-Range. A broken one can't be resumed.
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

    /// How a failure's text names a request on this rung.
    var request: String {
        switch self {
        case .chunks: "with a range"
        case .stream: "with a range up to the end"
        case .whole: "without a range"
        }
    }
}
