/// What the process of a coordinator knows besides the database, where it is more than a coordinator.
public struct OwnProcess: Sendable {
    /// The sinks that workers reach which the process starts by itself: nobody is told to start one.
    public var sinks: Set<String> = []
    /// Whether these workers are about to begin or to end: that there are none then is nothing to be told.
    public var areWorkersPassing: @Sendable () -> Bool = { false }
    /// What keeps the database of the process from working, in words, if that is known.
    public var databaseTrouble: @Sendable () -> String? = { nil }

    /// A coordinator and nothing more.
    public init() {}
}
