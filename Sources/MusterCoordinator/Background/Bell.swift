import Synchronization

/// Wakes everybody who waits for the log to grow.
final class Bell: Sendable {
    private struct Waiters {
        var rings = 0
        var next = 0
        var sleeping: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let waiters = Mutex(Waiters())

    /// How often it was rung.
    var rings: Int { waiters.withLock(\.rings) }

    /// Returns once it was rung more often than `rings`, after `limit`, or when the task is cancelled, whichever comes first.
    ///
    /// - Parameter rings: the count from before the look at what is waited for: no ring between that look and this call is missed.
    func wait(since rings: Int, limit: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.sleepUntilRung(since: rings) }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Wakes all who wait now.
    func ring() {
        let woken = waiters.withLock { waiters in
            waiters.rings += 1
            defer { waiters.sleeping = [:] }
            return waiters.sleeping.values
        }
        for waiter in woken { waiter.resume() }
    }

    private func sleepUntilRung(since rings: Int) async {
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
