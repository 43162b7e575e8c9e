public import MusterCore

/// A change of a group's settings.
public struct GroupChange: Hashable, Sendable {
    /// Higher is served first.
    public var priority: Int32?
    /// Relative share among groups of the same priority.
    public var weight: Int32?
    /// Cap on its connections.
    public var maxConnections: Change<Int32>
    /// Cap on its bytes per second at times for which its timetable has no entry.
    public var bytesPerSecond: Change<Int64>
    /// The daily hours in which it may run.
    public var window: Change<TimeWindow>
    /// Its rates by the time of day, as a JSON array.
    public var timetable: Change<String>
    /// How long a generation may take. It counts from now, and from the beginning of each further generation.
    public var deadline: Change<Duration>
    /// What happens at the deadline.
    public var deadlineAction: DeadlineAction?
    /// The groups that it waits for. They replace the present ones.
    public var prerequisites: [GroupPrerequisite]?
    /// The request options of its sources, as a JSON object; may hold secrets. Leases granted before keep their options.
    public var options: Change<String>
    /// The resolver of fresh URLs, as a JSON object; may hold secrets.
    public var resolver: Change<String>
    /// The caller's data, as JSON.
    public var metadata: Change<String>

    /// A change. Settings that are not given stay.
    public init(
        priority: Int32? = nil, weight: Int32? = nil, maxConnections: Change<Int32> = .keep,
        bytesPerSecond: Change<Int64> = .keep, window: Change<TimeWindow> = .keep, timetable: Change<String> = .keep,
        deadline: Change<Duration> = .keep, deadlineAction: DeadlineAction? = nil,
        prerequisites: [GroupPrerequisite]? = nil, options: Change<String> = .keep, resolver: Change<String> = .keep,
        metadata: Change<String> = .keep
    ) {
        self.priority = priority
        self.weight = weight
        self.maxConnections = maxConnections
        self.bytesPerSecond = bytesPerSecond
        self.window = window
        self.timetable = timetable
        self.deadline = deadline
        self.deadlineAction = deadlineAction
        self.prerequisites = prerequisites
        self.options = options
        self.resolver = resolver
        self.metadata = metadata
    }
}
