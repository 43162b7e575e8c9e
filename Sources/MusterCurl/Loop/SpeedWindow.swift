/// Measures the recent speed of a body. It is checked six times per span of the limit, so that a body that stops is
/// detected about one span later. With one check per span, a span that began with bytes would have to be followed by a
/// second one.
struct SpeedWindow {
    private static let slices = 6

    /// When to look next, in monotonic nanoseconds.
    var due = UInt64.max
    /// The byte counts at the start and at each look since, as far back as the span of the limit.
    private var marks: [Int64] = []

    /// Starts the window now.
    mutating func begin(_ limit: LowSpeedLimit, at now: UInt64, bytes: Int64) {
        marks.removeAll(keepingCapacity: true)
        marks.append(bytes)
        due = now &+ Self.slice(of: limit)
    }

    /// Whether fewer bytes than the limit allows came within the last span; called when `due` has passed.
    mutating func isBelow(_ limit: LowSpeedLimit, at now: UInt64, bytes: Int64) -> Bool {
        due = now &+ Self.slice(of: limit)
        marks.append(bytes)
        guard marks.count > Self.slices else { return false }
        return bytes - marks.removeFirst() < Self.least(limit)
    }

    private static func slice(of limit: LowSpeedLimit) -> UInt64 {
        max(1_000_000, limit.over.nanosecondsClamped / UInt64(slices))
    }

    /// At least one byte: a body that stops is below any limit, however short its span.
    private static func least(_ limit: LowSpeedLimit) -> Int64 {
        let milliseconds = Int64(limit.over.nanosecondsClamped / 1_000_000)
        let (product, overflow) = max(0, limit.bytesPerSecond).multipliedReportingOverflow(by: milliseconds)
        return overflow ? .max : max(1, product / 1000)
    }
}
