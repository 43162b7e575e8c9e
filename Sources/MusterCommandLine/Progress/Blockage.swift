/// What keeps files from being stored, as one look after the other finds it: it is told once, when it has lasted, and when it is over.
struct Blockage {
    /// What is in the way.
    enum Kind: Hashable, Sendable {
        /// The directory takes no writes.
        case refused
        /// There is no room.
        case full
    }

    /// What is new.
    enum News: Hashable, Sendable {
        /// This has lasted.
        case lasts(Kind)
        /// This has been told, and is over.
        case isOver(Kind)
    }

    private var seen: Kind?
    private var looks = 0
    private var told: Kind?

    /// Takes in what a look has found.
    ///
    /// - Parameters:
    ///   - found: what is in the way; `nil` for nothing.
    ///   - most: in how many looks, one after the other, it is found before it counts.
    ///   - hasCome: whether bytes have come since the look before.
    ///   - hasRoom: whether more has been free than when a lack of room was told: what comes without that had its room already.
    mutating func look(_ found: Kind?, looks most: Int, hasCome: Bool, hasRoom: Bool) -> News? {
        if found != seen { (seen, looks) = (found, 0) }
        guard let found else {
            // A parked sink is tried now and then; only bytes show that there is room indeed.
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
