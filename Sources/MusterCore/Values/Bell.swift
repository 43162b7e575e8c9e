import Synchronization

/// Wakes everybody who waits for something to happen, such as the log to grow.
public final class Bell: Sendable {
    private struct Waiters {
        var rings = 0
        var next = 0
        var sleeping: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let waiters = Mutex(Waiters())

    /// A bell that nobody has rung.
    public init() {}

    /// How often it was rung.
    public var rings: Int { waiters.withLock(\.rings) }

    /// Returns once it was rung more often than `rings`, after `limit`, or when the task is cancelled, whichever comes first.
    ///
    /// - Parameters:
    ///   - rings: the count from before the look at what is waited for: no ring between that look and this call is missed.
    ///   - clock: what the limit is measured by.
    public func wait(since rings: Int, limit: Duration, clock: some Clock<Duration>) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait(since: rings) }
            group.addTask { try? await clock.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Wakes all who wait now.
    public func ring() {
        let woken = waiters.withLock { waiters in
            waiters.rings += 1
            defer { waiters.sleeping = [:] }
            return waiters.sleeping.values
        }
        for waiter in woken { waiter.resume() }
    }

    /// Returns once it was rung more often than `rings`, or when the task is cancelled.
    public func wait(since rings: Int) async {
        let number = waiters.withLock { waiters in
            waiters.next += 1
            return waiters.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isAwake = waiters.withLock { waiters in
                    // Rung or cancelled before it lay down: nobody was found to wake.
                    guard waiters.rings == rings, !Task.isCancelled else { return true }
                    waiters.sleeping[number] = continuation
                    return false
                }
                if isAwake { continuation.resume() }
            }
        } onCancel: {
            waiters.withLock { $0.sleeping.removeValue(forKey: number) }?.resume()
        }
    }
}
