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

    /// Changes in place what is known at a moment, and notes it until another one; `value` is changed where nothing is known.
    mutating func change<Result>(
        of origin: String, at moment: Int64, until: Int64, from value: @autoclosure () -> Value,
        _ body: (inout Value) -> Result
    ) -> Result {
        if entries[origin].map({ $0.until <= moment }) ?? true { note(value(), of: origin, until: until) }
        entries[origin]!.until = until
        return body(&entries[origin]!.value)
    }

    mutating func forget(_ origin: String) {
        if !entries.isEmpty { entries[origin] = nil }
    }
}
