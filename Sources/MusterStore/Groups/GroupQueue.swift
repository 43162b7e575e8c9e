/// Groups that are served before another one, since they have a higher priority.
public struct UrgentGroups: Sendable, Hashable {
    /// The most groups that are named.
    public static let named = 3
    /// The most groups of a sink that are looked at, besides those that are asked about: its most urgent ones.
    public static let considered: Int64 = 100

    /// The names of the first of them, the most urgent one first.
    public var names: [String]
    /// How many there are, of those that are looked at.
    public var count: Int64
    /// The highest of their priorities.
    public var priority: Int32

    /// Groups of which the first are named.
    public init(names: [String], count: Int64, priority: Int32) {
        self.names = names
        self.count = count
        self.priority = priority
    }
}

/// What a group with chunks that could be fetched at once waits for.
public struct GroupQueue: Sendable, Hashable {
    /// An origin of such chunks that is not paused.
    public struct Origin: Sendable, Hashable {
        /// Scheme, host and port.
        public var key: String
        /// Whether it has as many connections as it may have now.
        public var isFull: Bool
        /// The more urgent groups that take every connection to it that comes free; `nil` if there are none.
        public var urgent: UrgentGroups?

        /// An origin in this state.
        public init(key: String, isFull: Bool, urgent: UrgentGroups? = nil) {
            self.key = key
            self.isFull = isFull
            self.urgent = urgent
        }
    }

    /// These origins, by key.
    public var origins: [Origin]
    /// Whether no worker that could fetch has room for another lease.
    public var areWorkersBusy: Bool
    /// The more urgent groups that take every slot that comes free, at whatever origin; `nil` if there are none, or a worker has room.
    public var urgentForSlots: UrgentGroups?

    /// The more urgent groups by the keys of the origins that they keep to themselves.
    public var urgent: [String: UrgentGroups] {
        origins.reduce(into: [:]) { urgent, origin in urgent[origin.key] = origin.urgent }
    }

    /// A queue at these origins.
    public init(origins: [Origin], areWorkersBusy: Bool, urgentForSlots: UrgentGroups? = nil) {
        self.origins = origins
        self.areWorkersBusy = areWorkersBusy
        self.urgentForSlots = urgentForSlots
    }
}
