/// How many bytes of a body came lately. It is looked at six times within the time of its limit, so that a body which stops is found out when
/// that time is over, and not only when a second one is that began with bytes.
struct SpeedWindow {
    private static let slices = 6

    /// When to look next, in monotonic nanoseconds.
    var due = UInt64.max
    /// How many bytes there were at the beginning and at each look since, as far back as the limit goes.
    private var marks: [Int64] = []

    /// The time begins now.
    mutating func begin(_ limit: LowSpeedLimit, at now: UInt64, bytes: Int64) {
        marks.removeAll(keepingCapacity: true)
        marks.append(bytes)
        due = now &+ Self.slice(of: limit)
    }

    /// Whether less came than the limit allows, within the last time that it is for; called when that is due.
    mutating func isBelow(_ limit: LowSpeedLimit, at now: UInt64, bytes: Int64) -> Bool {
        due = now &+ Self.slice(of: limit)
        marks.append(bytes)
        guard marks.count > Self.slices else { return false }
        return bytes - marks.removeFirst() < Self.least(limit)
    }

    private static func slice(of limit: LowSpeedLimit) -> UInt64 {
        max(1_000_000, limit.over.nanosecondsClamped / UInt64(slices))
    }

    /// One byte at least: a body that stops is below any limit, however short its time.
    private static func least(_ limit: LowSpeedLimit) -> Int64 {
        let milliseconds = Int64(limit.over.nanosecondsClamped / 1_000_000)
        let (product, overflow) = max(0, limit.bytesPerSecond).multipliedReportingOverflow(by: milliseconds)
        return overflow ? .max : max(1, product / 1000)
    }
}
