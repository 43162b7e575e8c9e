/// What the process of a coordinator knows in addition to the database, where it is more than a coordinator.
public struct OwnProcess: Sendable {
    /// The state of the process's own workers for a sink that no live worker reaches.
    public enum Workers: Sendable, Hashable {
        /// It starts no workers: the user has to.
        case none
        /// Its workers are about to begin or to end: it is not reported then that there are none.
        case passing
        /// It starts worker processes by itself, and again when they end.
        case coming
        /// Its workers were told to leave, and stay away.
        case left
        /// Its workers are in this process.
        case within
    }

    /// The state of its workers for a sink.
    public var workers: @Sendable (_ sink: String) -> Workers = { _ in .none }
    /// Whether it goes on when its sink is well again; otherwise it may end before that.
    public var waitsForSinks = true
    /// What keeps the database of the process from working, and whether that ends by itself, as text; `nil` if nothing is known.
    public var databaseTrouble: @Sendable () -> String? = { nil }

    /// Called with the database's message when that tells of damaged files; possibly again and again.
    public var onDamage: @Sendable (_ reason: String) -> Void = { _ in }

    /// A process that is only a coordinator.
    public init() {}
}
