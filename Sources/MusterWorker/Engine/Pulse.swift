import MusterSystem
import Synchronization

/// Says now and then, to whichever thread asks first, that a word is due about long work.
final class Pulse: Sendable {
    /// How often a long verification says that it is alive, in nanoseconds.
    private static let interval: Int64 = 2_000_000_000

    private let last = Atomic<Int64>(MonotonicClock.now())

    /// Begins to count now.
    init() {}

    /// Whether a word is due; the caller that is told so says it.
    func isDue() -> Bool {
        let now = MonotonicClock.now()
        let before = last.load(ordering: .relaxed)
        guard now - before >= Self.interval else { return false }
        return last.compareExchange(expected: before, desired: now, ordering: .relaxed).exchanged
    }
}
