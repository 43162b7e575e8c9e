/// Facts about origins, some of them kept for a limited time. A forgotten fact is learned again.
struct Remembered<Value: Sendable>: Sendable {
    private var entries: [String: (value: Value, until: Int64)] = [:]
    private static var most: Int { 1_024 }

    /// The value that is valid at a moment, in nanoseconds.
    func value(of origin: String, at moment: Int64) -> Value? {
        entries[origin].flatMap { $0.until > moment ? $0.value : nil }
    }

    /// Notes a value until a moment, in nanoseconds.
    mutating func note(_ value: Value, of origin: String, until: Int64 = .max) {
        if entries.count >= Self.most, entries[origin] == nil { entries = [:] }
        entries[origin] = (value, until)
    }

    /// Changes the value that is valid at a moment, in place, and notes it until another moment. If there is none, `value` is changed.
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
