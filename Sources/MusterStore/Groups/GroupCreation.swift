public import MusterCore

/// A group to create.
public struct GroupCreation: Sendable {
    /// Its name.
    public var name: String
    /// Where its files end up.
    public var sink: String
    /// Higher is served first.
    public var priority: Int32
    /// Share within the priority.
    public var weight: Int32
    /// Cap on its leases.
    public var maxConnections: Int32?
    /// The caller's data, as JSON.
    public var metadata: String?
    /// Whether no task will be added any more.
    public var isSealed: Bool
    /// How its sources are asked, as a JSON object; may hold secrets.
    public var options: String?
    /// What shall be done where there is a choice, as a JSON object.
    public var policy: String?
    /// Whether its tasks are made of files that the sink has, and its files are for others. Not part of the policy, which workers and
    /// coordinators of before read to its last field (F18).
    public var reuses: Bool
    /// Who knows fresh URLs, as a JSON object; may hold secrets.
    public var resolver: String?
    /// Cap on its bytes per second, as far as its timetable says nothing else.
    public var bytesPerSecond: Int64?
    /// When it may run at all.
    public var window: GroupWindow?
    /// Its rates by the time of day, as a JSON array of `{from, to, timeZone?, bytesPerSecond}`.
    public var timetable: String?
    /// How long a generation of it may take.
    public var deadline: Duration?
    /// What happens when that is over.
    public var deadlineAction: DeadlineAction
    /// The groups that it waits for.
    public var prerequisites: [GroupPrerequisite]

    /// A group.
    public init(
        name: String, sink: String, priority: Int32, weight: Int32, maxConnections: Int32?, metadata: String?,
        isSealed: Bool, options: String? = nil, policy: String? = nil, resolver: String? = nil,
        bytesPerSecond: Int64? = nil, window: GroupWindow? = nil, timetable: String? = nil, deadline: Duration? = nil,
        deadlineAction: DeadlineAction = .fail, prerequisites: [GroupPrerequisite] = [], reuses: Bool = true
    ) {
        self.name = name
        self.sink = sink
        self.priority = priority
        self.weight = weight
        self.maxConnections = maxConnections
        self.metadata = metadata
        self.isSealed = isSealed
        self.options = options
        self.policy = policy
        self.reuses = reuses
        self.resolver = resolver
        self.bytesPerSecond = bytesPerSecond
        self.window = window
        self.timetable = timetable
        self.deadline = deadline
        self.deadlineAction = deadlineAction
        self.prerequisites = prerequisites
    }
}
