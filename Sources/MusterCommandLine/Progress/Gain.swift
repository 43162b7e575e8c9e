import MusterAPI
import MusterCore

/// The bytes of a group that arrived during a wait, and how long that took.
struct Gain: Hashable, Sendable {
    /// The state when the wait began.
    struct Start: Hashable, Sendable {
        /// When the wait began.
        let moment: ContinuousClock.Instant
        /// The group's bytes at that moment.
        private(set) var bytes: Int64
        /// How many of these bytes belong to unfinished tasks, by their keys.
        private var unfinished: [String: Int64] = [:]

        /// The start of a group without any bytes.
        init(at moment: ContinuousClock.Instant) { (self.moment, bytes) = (moment, 0) }

        /// The start of a group with the bytes that it has now.
        init(_ group: GroupDocument, at moment: ContinuousClock.Instant) {
            (self.moment, bytes) = (moment, group.bytes.done)
        }

        /// Records the bytes that unfinished tasks have.
        mutating func note(_ tasks: [TaskDocument]) {
            for task in tasks where task.bytes.done > 0 { unfinished[task.key] = task.bytes.done }
        }

        /// This start without the bytes of tasks that have started over since.
        func without(_ startedOver: [String]) -> Start {
            var rest = self
            for key in startedOver { rest.bytes -= rest.unfinished.removeValue(forKey: key) ?? 0 }
            return rest
        }
    }

    /// The bytes that arrived during the wait.
    var bytes: Int64
    /// Whether the group had no bytes before the wait.
    var areAll: Bool
    /// The length of the wait.
    var time: Duration

    /// The gain of a group since a start.
    init(_ group: GroupDocument, since start: Start, now: ContinuousClock.Instant) {
        bytes = max(0, group.bytes.done - start.bytes)
        areAll = start.bytes == 0
        time = now - start.moment
    }

    /// The sum of two successive gains.
    static func + (first: Gain, second: Gain) -> Gain {
        var sum = first
        sum.bytes += second.bytes
        sum.time += second.time
        sum.areAll = first.areAll && second.areAll
        return sum
    }

    /// The bytes of a group, and how fast they arrived: `1.2 GiB in 14s, 88.0 MiB/s`. With bytes from before the wait: `1.2 GiB, 350.0 MiB
    /// of it in 4s, …`.
    func text(all: Int64) -> String {
        let total = "\(ByteCount(bytes: all))"
        // Without bytes that arrived during the wait there is no speed to tell.
        guard let rate else { return total }
        let come = areAll ? total : "\(total), \(ByteCount(bytes: bytes)) of it"
        return "\(come) in \(Self.text(time)), \(rate)"
    }

    /// The average speed; `nil` if nothing arrived.
    var rate: String? {
        guard bytes > 0, time > .zero else { return nil }
        return ProgressSnapshot.rate(Int64(min(Double(bytes) / time.seconds, 1e18)))
    }

    /// `14s`; with tenths below 10 s: `1.4s`.
    private static func text(_ time: Duration) -> String {
        guard time < .seconds(10) else { return DurationNotation.format(time) }
        let tenths = max(1, (time.milliseconds + 50) / 100)
        return "\(tenths / 10).\(tenths % 10)s"
    }
}
