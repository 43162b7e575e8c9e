/// How many bytes a rate allows by now: time earns bytes, and the pieces that are taken spend them. Pure: the time is
/// passed in, as nanoseconds of any clock that does not go back.
///
/// While the balance is positive, a caller may take a whole piece, however large, and leave a debt that all callers wait
/// for: no piece has to be cut, and in the long run exactly the rate comes through. Unspent bytes are kept up to a
/// quarter of a second, so that over ten seconds at most 2.5 % and the last pieces come on top of the rate.
public struct TokenBucket: Sendable, Hashable {
    private static let nanosecondsPerSecond: Int128 = 1_000_000_000

    /// Bytes per second; 0 lets nothing through.
    public private(set) var bytesPerSecond: Int64
    /// Billionths of bytes that may be taken; below zero is a debt. An integer, so that no fraction of a byte is lost.
    private var balance: Int128 = 0
    private var countedAt: UInt64

    /// A bucket that is empty at the moment `now`; a negative rate counts as 0.
    public init(bytesPerSecond: Int64, at now: UInt64) {
        self.bytesPerSecond = max(0, bytesPerSecond)
        countedAt = now
    }

    /// Goes on at another rate. What was earned or is owed stays, as far as the new rate lets anything be kept.
    public mutating func change(to bytesPerSecond: Int64, at now: UInt64) {
        earn(until: now)
        self.bytesPerSecond = max(0, bytesPerSecond)
        balance = min(balance, mostKept)
    }

    /// Books a piece, even if the balance is not positive.
    public mutating func take(_ bytes: Int64, at now: UInt64) {
        earn(until: now)
        balance -= Int128(max(0, bytes)) * Self.nanosecondsPerSecond
    }

    /// How long to wait before the next piece may be taken, in nanoseconds: 0 for not at all, `nil` for as long as the rate is 0.
    ///
    /// A caller that has to wait does so until a hundredth of a second's bytes are there, so that a high rate does not
    /// mean a wake-up per piece.
    public mutating func wait(at now: UInt64) -> UInt64? {
        earn(until: now)
        guard balance <= 0 else { return 0 }
        guard bytesPerSecond > 0 else { return nil }
        let rate = Int128(bytesPerSecond)
        let wanted = max(Self.nanosecondsPerSecond, rate * Self.nanosecondsPerSecond / 100)
        return UInt64(clamping: (wanted - balance + rate - 1) / rate)
    }

    private var mostKept: Int128 {
        max(Self.nanosecondsPerSecond, Int128(bytesPerSecond) * Self.nanosecondsPerSecond / 4)
    }

    /// Adds what the rate earns until `now`: bytes per second equal billionths of bytes per nanosecond.
    private mutating func earn(until now: UInt64) {
        guard now > countedAt else { return }
        balance = min(mostKept, balance + Int128(now - countedAt) * Int128(bytesPerSecond))
        countedAt = now
    }
}
