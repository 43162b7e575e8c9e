/// What a verb wakes after its commit: the parts of a coordinator that wait for such changes.
///
/// Every verb of the store states its wake where it runs its statement, and the owner of the store is told after the
/// commit. So a route that calls a verb has nothing to do. A wake is a hint: everything is polled as well, so a lost wake
/// costs a second and a needless wake costs a query.
public struct Wake: OptionSet, Sendable, Hashable {
    /// The members as bits.
    public let rawValue: UInt8

    /// A set of these bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// More work may be leasable: chunks were added, came back or became due, or room became free.
    public static let work = Wake(rawValue: 1 << 0)
    /// Events may have been written that have no position yet.
    public static let events = Wake(rawValue: 1 << 1)
    /// A delivery of an event may be due.
    public static let deliveries = Wake(rawValue: 1 << 2)
}
