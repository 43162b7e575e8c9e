import MusterAPI
import MusterCore

/// What came of a group while somebody waited for it, and how long that took.
struct Gain: Hashable, Sendable {
    /// What was there when the wait began.
    struct Start: Hashable, Sendable {
        /// When that was.
        let moment: ContinuousClock.Instant
        /// The bytes that were there.
        private(set) var bytes: Int64
        /// How many of these belong to unfinished tasks, by their keys.
        private var unfinished: [String: Int64] = [:]

        /// A group of which nothing was there.
        init(at moment: ContinuousClock.Instant) { (self.moment, bytes) = (moment, 0) }

        /// A group as it is.
        init(_ group: GroupDocument, at moment: ContinuousClock.Instant) {
            (self.moment, bytes) = (moment, group.bytes.done)
        }

        /// Notes what was there of unfinished tasks.
        mutating func note(_ tasks: [TaskDocument]) {
            for task in tasks where task.bytes.done > 0 { unfinished[task.key] = task.bytes.done }
        }

        /// The same without what was there of tasks that have started over since.
        func without(_ startedOver: [String]) -> Start {
            var rest = self
            for key in startedOver { rest.bytes -= rest.unfinished.removeValue(forKey: key) ?? 0 }
            return rest
        }
    }

    /// The bytes that came.
    var bytes: Int64
    /// Whether these are all that there are.
    var areAll: Bool
    /// How long that took.
    var time: Duration

    /// What has come of a group.
    init(_ group: GroupDocument, since start: Start, now: ContinuousClock.Instant) {
        bytes = max(0, group.bytes.done - start.bytes)
        areAll = start.bytes == 0
        time = now - start.moment
    }

    /// What this and another one come to, one after the other.
    static func + (first: Gain, second: Gain) -> Gain {
        var sum = first
        sum.bytes += second.bytes
        sum.time += second.time
        sum.areAll = first.areAll && second.areAll
        return sum
    }

    /// The bytes of a group, and how fast they came: `1.2 GiB in 14s, 88.0 MiB/s`. Where some were there before: `1.2 GiB, 350.0 MiB of it in 4s, …`.
    func text(all: Int64) -> String {
        let total = "\(ByteCount(bytes: all))"
        // What was there before came at no speed that anybody has seen.
        guard let rate else { return total }
        let come = areAll ? total : "\(total), \(ByteCount(bytes: bytes)) of it"
        return "\(come) in \(Self.text(time)), \(rate)"
    }

    /// How fast that came on average; nothing where nothing came.
    var rate: String? {
        guard bytes > 0, time > .zero else { return nil }
        return ProgressSnapshot.rate(Int64(min(Double(bytes) / time.seconds, 1e18)))
    }

    /// `14s`, and `1.4s` where a second is much.
    private static func text(_ time: Duration) -> String {
        guard time < .seconds(10) else { return DurationNotation.format(time) }
        let tenths = max(1, (time.milliseconds + 50) / 100)
        return "\(tenths / 10).\(tenths % 10)s"
    }
}
