/// What a test waited for did not happen in time.
public struct TimedOut: Error, Sendable, CustomStringConvertible {
    /// What was waited for.
    public let what: String
    /// How long.
    public let limit: Duration
    /// What was seen instead, such as the output so far.
    public let details: String

    /// The limit of every wait that names none. It is generous: it is there to end a hang, not to measure anything.
    public static let defaultLimit: Duration = .seconds(60)

    /// Everything in one text.
    public var description: String { "waited \(limit) in vain for \(what)\n\(details)" }
}
