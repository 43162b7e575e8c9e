/// What is known of origins, of some of them for a time. What is forgotten is found out again.
struct Remembered<Value: Sendable>: Sendable {
    private var entries: [String: (value: Value, until: Int64)] = [:]
    private static var most: Int { 1_024 }

    /// What is known at a moment, in nanoseconds.
    func value(of origin: String, at moment: Int64) -> Value? {
        entries[origin].flatMap { $0.until > moment ? $0.value : nil }
    }

    /// Notes what is known until a moment.
    mutating func note(_ value: Value, of origin: String, until: Int64 = .max) {
        if entries.count >= Self.most, entries[origin] == nil { entries = [:] }
        entries[origin] = (value, until)
    }

    mutating func forget(_ origin: String) {
        if !entries.isEmpty { entries[origin] = nil }
    }
}
