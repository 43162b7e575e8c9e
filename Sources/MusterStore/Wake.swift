/// Who waits for what a verb has committed.
///
/// Every verb of the store states it, where it runs its statement, and the owner of the store is told after the commit: a route that
/// calls a verb has nothing to remember. A wake is a hint. Everything is polled as well, so that a lost one costs a second and a
/// needless one costs a question to the database.
public struct Wake: OptionSet, Sendable, Hashable {
    /// The members as bits.
    public let rawValue: UInt8

    /// A set of these bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Something may be leased that could not be leased before: chunks were added, came back or became due, or room became free.
    public static let work = Wake(rawValue: 1 << 0)
    /// Events may have been written that have no position yet.
    public static let events = Wake(rawValue: 1 << 1)
    /// A delivery of an event may be due.
    public static let deliveries = Wake(rawValue: 1 << 2)

    /// The verb changes nothing that anybody waits for.
    public static let nobody: Wake = []
}
