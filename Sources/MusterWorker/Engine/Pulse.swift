import MusterSystem
import Synchronization

/// Limits the rate of progress reports during long work; threads share it.
final class Pulse: Sendable {
    /// How often a long verification reports progress, in nanoseconds.
    private static let interval: Int64 = 2_000_000_000

    private let last = Atomic<Int64>(MonotonicClock.now())

    /// The first report is due one interval from now.
    init() {}

    /// Whether a report is due. Only one caller gets `true` for it and must send it.
    func isDue() -> Bool {
        let now = MonotonicClock.now()
        let before = last.load(ordering: .relaxed)
        guard now - before >= Self.interval else { return false }
        return last.compareExchange(expected: before, desired: now, ordering: .relaxed).exchanged
    }
}
