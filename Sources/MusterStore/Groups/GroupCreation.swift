public import MusterCore

/// A group to create.
public struct GroupCreation: Sendable {
    /// Its name.
    public var name: String
    /// The sink of its files.
    public var sink: String
    /// Higher is served first.
    public var priority: Int32 = 0
    /// Relative share among groups of the same priority.
    public var weight: Int32 = 1
    /// Cap on its connections.
    public var maxConnections: Int32?
    /// The caller's data, as JSON.
    public var metadata: String?
    /// Whether it is sealed: no task can be added later.
    public var isSealed = false
    /// The request options of its sources, as a JSON object; may hold secrets.
    public var options: String?
    /// Its policy, as a JSON object: what workers do where there is a choice.
    public var policy: String?
    /// Whether its tasks reuse files that the sink has, and its files may be reused. This is not part of the policy,
    /// because older workers and coordinators reject unknown fields of the policy (F18).
    public var reuses = true
    /// The resolver of fresh URLs, as a JSON object; may hold secrets.
    public var resolver: String?
    /// Cap on its bytes per second at times for which its timetable has no entry.
    public var bytesPerSecond: Int64?
    /// The daily hours in which it may run.
    public var window: TimeWindow?
    /// Its rates by the time of day, as a JSON array of `{from, to, timeZone?, bytesPerSecond}`.
    public var timetable: String?
    /// How long each of its generations may take.
    public var deadline: Duration?
    /// What happens at the deadline.
    public var deadlineAction = DeadlineAction.fail
    /// The groups that it waits for.
    public var prerequisites: [GroupPrerequisite] = []

    /// A group with these settings, and the defaults of all others.
    public init(name: String, sink: String) {
        self.name = name
        self.sink = sink
    }
}
