public import MusterCore

/// The daily hours in which a group may run.
public struct GroupWindow: Hashable, Sendable {
    /// The local time at which it opens, as `HH:MM`.
    public var from: String
    /// The local time at which it closes, as `HH:MM`. A time before `from` is on the next day; the same time means always
    /// open.
    public var to: String
    /// The IANA name of the time zone of these times.
    public var timeZone: String

    /// A window.
    public init(from: String, to: String, timeZone: String) {
        self.from = from
        self.to = to
        self.timeZone = timeZone
    }
}

/// A group that another group waits for.
public struct GroupPrerequisite: Hashable, Sendable {
    /// Its name.
    public var group: String
    /// The condition: how it must end.
    public var on: PrerequisiteCondition

    /// A prerequisite.
    public init(group: String, on: PrerequisiteCondition) {
        self.group = group
        self.on = on
    }
}

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
    public var window: Change<GroupWindow>
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
        bytesPerSecond: Change<Int64> = .keep, window: Change<GroupWindow> = .keep, timetable: Change<String> = .keep,
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

/// A change of one setting.
public enum Change<Value: Hashable & Sendable>: Hashable, Sendable {
    /// The setting stays.
    case keep
    /// The setting returns to its default.
    case clear
    /// The setting gets this value.
    case set(Value)

    /// Whether the setting changes, and its new value; `nil` is the default.
    var wish: (isSet: Bool, value: Value?) {
        switch self {
        case .keep: (false, nil)
        case .clear: (true, nil)
        case .set(let value): (true, value)
        }
    }
}
