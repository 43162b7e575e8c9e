public import MusterCore

/// When a group may run at all, every day.
public struct GroupWindow: Hashable, Sendable {
    /// The local time at which it opens, as `HH:MM`.
    public var from: String
    /// The local time at which it closes, as `HH:MM`: of the next day if it is before `from`; the same means always open.
    public var to: String
    /// The IANA time zone in which the clock is read.
    public var timeZone: String

    /// A window.
    public init(from: String, to: String, timeZone: String) {
        self.from = from
        self.to = to
        self.timeZone = timeZone
    }
}

/// A group that another one waits for.
public struct GroupPrerequisite: Hashable, Sendable {
    /// Its name.
    public var group: String
    /// How it must end.
    public var on: PrerequisiteCondition

    /// A prerequisite.
    public init(group: String, on: PrerequisiteCondition) {
        self.group = group
        self.on = on
    }
}

/// What is to become of a group's settings.
public struct GroupChange: Hashable, Sendable {
    /// Higher is served first.
    public var priority: Int32?
    /// Share within the priority.
    public var weight: Int32?
    /// Cap on its leases.
    public var maxConnections: Change<Int32>
    /// Cap on its bytes per second, as far as its timetable says nothing else.
    public var bytesPerSecond: Change<Int64>
    /// When it may run at all.
    public var window: Change<GroupWindow>
    /// Its rates by the time of day, as a JSON array.
    public var timetable: Change<String>
    /// How long it may take, counted from now and from the beginning of each further generation.
    public var deadline: Change<Duration>
    /// What happens when that is over.
    public var deadlineAction: DeadlineAction?
    /// The groups that it waits for, in place of the ones it waited for.
    public var prerequisites: [GroupPrerequisite]?
    /// How its sources are asked, as a JSON object; may hold secrets. Leases that are held keep what they were granted with.
    public var options: Change<String>
    /// Who knows fresh URLs, as a JSON object; may hold secrets.
    public var resolver: Change<String>
    /// The caller's data, as JSON.
    public var metadata: Change<String>

    /// A change; whatever is not given stays.
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

/// What is to become of one setting.
public enum Change<Value: Hashable & Sendable>: Hashable, Sendable {
    /// It stays.
    case keep
    /// It goes back to the default.
    case clear
    /// It is this from now on.
    case set(Value)

    /// Whether it becomes something else, and what; nothing is the default.
    var wish: (isSet: Bool, value: Value?) {
        switch self {
        case .keep: (false, nil)
        case .clear: (true, nil)
        case .set(let value): (true, value)
        }
    }
}
