import Synchronization

/// Wakes everybody who waits for the log to grow.
final class Bell: Sendable {
    private struct Waiters {
        var next = 0
        var sleeping: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let waiters = Mutex(Waiters())

    /// Returns at the next ring, after `limit`, or when the task is cancelled, whichever comes first.
    func wait(limit: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.sleepUntilRung() }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Wakes all who wait now.
    func ring() {
        let woken = waiters.withLock { waiters in
            defer { waiters.sleeping = [:] }
            return waiters.sleeping.values
        }
        for waiter in woken { waiter.resume() }
    }

    private func sleepUntilRung() async {
        let number = waiters.withLock { waiters in
            waiters.next += 1
            return waiters.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isCancelled = waiters.withLock { waiters in
                    // Cancelled before it lay down: the handler below has found nobody to wake.
                    guard !Task.isCancelled else { return true }
                    waiters.sleeping[number] = continuation
                    return false
                }
                if isCancelled { continuation.resume() }
            }
        } onCancel: {
            waiters.withLock { $0.sleeping.removeValue(forKey: number) }?.resume()
        }
    }
}
