/// What the process of a coordinator knows besides the database, where it is more than a coordinator.
public struct OwnProcess: Sendable {
    /// What the process has of workers for a sink, where nothing is heard of any.
    public enum Workers: Sendable, Hashable {
        /// It starts none: somebody has to.
        case none
        /// They are about to begin or to end: that there are none then is nothing to be told.
        case passing
        /// It starts processes by itself, and again when they end.
        case coming
        /// They were told to leave, and stay away.
        case left
        /// They are in this process.
        case within
    }

    /// What it has of workers for a sink.
    public var workers: @Sendable (_ sink: String) -> Workers = { _ in .none }
    /// Whether it goes on when its sink is well again; otherwise it may end before that.
    public var waitsForSinks = true
    /// What keeps the database of the process from working, and whether that ends by itself, in words, if that is known.
    public var databaseTrouble: @Sendable () -> String? = { nil }

    /// Told what the database says where its files are damaged; maybe again and again.
    public var onDamage: @Sendable (_ reason: String) -> Void = { _ in }

    /// A coordinator and nothing more.
    public init() {}
}
