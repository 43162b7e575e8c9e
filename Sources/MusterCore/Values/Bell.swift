import Synchronization

/// Wakes all tasks that wait for something to happen, such as for the log to grow.
public final class Bell: Sendable {
    private struct Waiters {
        var rings = 0
        var next = 0
        var sleeping: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let waiters = Mutex(Waiters())

    /// A bell that has not been rung.
    public init() {}

    /// How often the bell was rung.
    public var rings: Int { waiters.withLock(\.rings) }

    /// How many tasks wait now.
    var sleeping: Int { waiters.withLock(\.sleeping.count) }

    /// Returns once the bell was rung more often than `rings`, after `limit`, or when the task is cancelled, whichever comes first.
    ///
    /// - Parameters:
    ///   - rings: the count from before the caller checked for what it waits for, so that no ring between the check and this call is missed.
    ///   - clock: the clock that measures the limit.
    public func wait(since rings: Int, limit: Duration, clock: some Clock<Duration>) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait(since: rings) }
            group.addTask { try? await clock.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Wakes all tasks that wait now.
    public func ring() {
        let woken = waiters.withLock { waiters in
            waiters.rings += 1
            defer { waiters.sleeping = [:] }
            return waiters.sleeping.values
        }
        for waiter in woken { waiter.resume() }
    }

    /// Returns once the bell was rung more often than `rings`, or when the task is cancelled.
    public func wait(since rings: Int) async {
        let number = waiters.withLock { waiters in
            waiters.next += 1
            return waiters.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isAwake = waiters.withLock { waiters in
                    // The bell was rung, or the task cancelled, before the continuation was stored: neither could wake it.
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
