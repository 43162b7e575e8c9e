import Synchronization

/// A rate that any number of transfers share, on any number of loops; it may be changed, set and lifted at any time, also
/// while they run.
///
/// Without a rate it costs a transfer one look at a flag for each piece of a body.
public final class ByteBudget: Sendable {
    /// The use of a budget over some time.
    public struct Use: Sendable, Hashable {
        /// The bytes that were taken under a rate.
        public var bytes: Int64
        /// Whether a transfer had to wait for this budget because it was the strictest of the transfer's budgets.
        public var isShort: Bool

        /// Makes a use from its values.
        public init(bytes: Int64, isShort: Bool) {
            self.bytes = bytes
            self.isShort = isShort
        }
    }

    private struct Contents {
        var bucket: TokenBucket?
        var use = Use(bytes: 0, isShort: false)
    }

    private let isLimited: Atomic<Bool>
    private let contents: Mutex<Contents>
    private let clock: @Sendable () -> UInt64

    /// Makes a budget.
    ///
    /// - Parameters:
    ///   - bytesPerSecond: the rate, `nil` for none.
    ///   - clock: nanoseconds of a clock that does not go back; the system's monotonic one when absent.
    public init(bytesPerSecond: Int64? = nil, clock: (@Sendable () -> UInt64)? = nil) {
        let clock = clock ?? monotonicNanoseconds
        self.clock = clock
        isLimited = Atomic(bytesPerSecond != nil)
        contents = Mutex(Contents(bucket: bytesPerSecond.map { TokenBucket(bytesPerSecond: $0, at: clock()) }))
    }

    /// The rate, `nil` for none.
    public var bytesPerSecond: Int64? { contents.withLock { $0.bucket?.bytesPerSecond } }

    /// Changes or lifts the rate. Transfers that wait notice within a quarter of a second.
    public func limit(to bytesPerSecond: Int64?) {
        let now = clock()
        contents.withLock { contents in
            if let bytesPerSecond {
                contents.bucket?.change(to: bytesPerSecond, at: now)
                contents.bucket = contents.bucket ?? TokenBucket(bytesPerSecond: bytesPerSecond, at: now)
            } else {
                contents.bucket = nil
            }
        }
        isLimited.store(bytesPerSecond != nil, ordering: .releasing)
    }

    /// Returns the use since the last call, and starts a new count.
    public func takeUse() -> Use {
        contents.withLock { contents in
            defer { contents.use = Use(bytes: 0, isShort: false) }
            return contents.use
        }
    }

    /// Notes that a transfer waits for this budget.
    func noteShortage() {
        contents.withLock { contents in
            if contents.bucket != nil { contents.use.isShort = true }
        }
    }

    /// Books a piece, if there is a rate.
    public func take(_ bytes: Int64) {
        guard isLimited.load(ordering: .acquiring) else { return }
        let now = clock()
        contents.withLock { contents in
            guard contents.bucket != nil else { return }
            contents.bucket?.take(bytes, at: now)
            contents.use.bytes += bytes
        }
    }

    /// How long to wait before the next piece, in nanoseconds; 0 for not at all, `nil` for as long as nothing is let through.
    public func wait() -> UInt64? {
        guard isLimited.load(ordering: .acquiring) else { return 0 }
        let now = clock()
        return contents.withLock { contents in
            guard contents.bucket != nil else { return 0 }
            return contents.bucket?.wait(at: now)
        }
    }
}
