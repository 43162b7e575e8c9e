/// A change of one setting.
public enum Change<Value: Hashable & Sendable>: Hashable, Sendable {
    /// The setting stays. In a `PATCH` its field is absent.
    case keep
    /// The setting is removed, or returns to its default. In a `PATCH` its field is `null`.
    case clear
    /// The setting gets this value.
    case set(Value)

    /// Whether the setting changes.
    public var isSet: Bool { self != .keep }

    /// The new value, if there is one.
    public var value: Value? {
        switch self {
        case .keep, .clear: nil
        case .set(let value): value
        }
    }

    /// The same change with another form of the value; where `transform` returns none, the setting is cleared.
    public func map<Other>(_ transform: (Value) throws -> Other?) rethrows -> Change<Other> {
        switch self {
        case .keep: .keep
        case .clear: .clear
        case .set(let value): try transform(value).map { .set($0) } ?? .clear
        }
    }
}
