/// Tracks what keeps files from being stored over successive checks. An obstacle is reported once, when it has lasted, and again when it is over.
struct Blockage {
    /// What is in the way.
    enum Kind: Hashable, Sendable {
        /// The directory takes no writes.
        case refused
        /// There is no room.
        case full
    }

    /// What there is to report.
    enum News: Hashable, Sendable {
        /// The obstacle has lasted.
        case lasts(Kind)
        /// An obstacle that was reported is over.
        case isOver(Kind)
    }

    private var seen: Kind?
    private var looks = 0
    private var told: Kind?

    /// Records the result of a check, and returns what there is to report.
    ///
    /// - Parameters:
    ///   - found: what is in the way; `nil` for nothing.
    ///   - most: the number of consecutive checks without progress after which an obstacle counts.
    ///   - hasCome: whether bytes have come since the previous check.
    ///   - hasRoom: whether more has become free than when a lack of room was reported; bytes that come without that use room allocated before.
    mutating func look(_ found: Kind?, looks most: Int, hasCome: Bool, hasRoom: Bool) -> News? {
        if found != seen { (seen, looks) = (found, 0) }
        guard let found else {
            // A parked sink is retried now and then, and no obstacle is seen meanwhile; only new bytes prove that there is room.
            guard let kind = told, kind == .refused || hasCome && hasRoom else { return nil }
            told = nil
            return .isOver(kind)
        }
        looks = hasCome ? 1 : looks + 1
        guard looks >= most, told != found else { return nil }
        told = found
        return .lasts(found)
    }
}
