/// How long a worker may believe that its session, and with it every lease, is still its own (`docs/protocol.md`).
///
/// The window counts from *before* the request that renewed it, on the worker's monotonic clock, and ends a margin early:
/// the coordinator started counting later, so it can't have given the leases away yet. The window only makes a worker stop
/// sooner; what keeps two writers apart is the epoch (I1).
public struct SessionTrust: Sendable, Hashable {
    /// When writing must stop, in nanoseconds of the worker's monotonic clock.
    public private(set) var end: Int64
    /// How long a session lives without a renewal.
    public private(set) var timeToLive: Duration

    /// The trust that a session begins with.
    ///
    /// - Parameter requested: the monotonic time, in nanoseconds, before the request that opened the session.
    public init(requested: Int64, timeToLive: Duration) {
        self.timeToLive = timeToLive
        end = requested + Self.window(timeToLive)
    }

    /// Extends the window after a successful sync that was sent at `requested`.
    public mutating func renew(requested: Int64, timeToLive: Duration) {
        self.timeToLive = timeToLive
        end = max(end, requested + Self.window(timeToLive))
    }

    /// Whether writes may go on at `now`.
    public func holds(at now: Int64) -> Bool { now < end }

    /// How often a worker syncs at the least: a third of the time to live.
    public var renewInterval: Duration { timeToLive / 3 }

    /// The time to live less a margin of a tenth, in nanoseconds. It is capped at `Limits.sessionTimeToLive`, which no coordinator exceeds,
    /// since a larger number might overflow.
    private static func window(_ timeToLive: Duration) -> Int64 {
        min(timeToLive, Limits.sessionTimeToLive.upperBound).milliseconds * 900_000
    }
}
