public import MusterCore

/// The limits of what a group may use, and when.
public struct GroupLimits: Hashable, Sendable, Codable {
    /// The most connections that the group may hold in the whole fleet.
    public var maxConnections: Int32?
    /// The most bytes per second of the whole fleet for the group, at times that its timetable does not cover.
    public var bytesPerSecond: Int64?
    /// When the group may run at all; always when absent.
    public var between: TimeWindow?
    /// Rates for parts of the day; the first entry that matches applies.
    public var timetable: [TimetableEntry]?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxConnections, bytesPerSecond, between, timetable
    }

    /// Limits; an absent value means no limit.
    public init(
        maxConnections: Int32? = nil, bytesPerSecond: Int64? = nil, between: TimeWindow? = nil,
        timetable: [TimetableEntry]? = nil
    ) {
        self.maxConnections = maxConnections
        self.bytesPerSecond = bytesPerSecond
        self.between = between
        self.timetable = timetable
    }

    /// Reads limits and refuses unknown ones.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        maxConnections = try container.integerIfPresent(Int32.self, forKey: .maxConnections)
        bytesPerSecond = try container.integerIfPresent(Int64.self, forKey: .bytesPerSecond)
        between = try container.decodeIfPresent(TimeWindow.self, forKey: .between)
        timetable = try container.decodeIfPresent([TimetableEntry].self, forKey: .timetable)
    }

    /// Throws if a limit is impossible, with the JSON pointer below the limits.
    func check() throws(InputRefusal) {
        if let maxConnections { try Self.check(connections: maxConnections) }
        if let bytesPerSecond { try Self.check(rate: bytesPerSecond, at: "/bytesPerSecond") }
        if let between { try Self.check(window: between) }
        if let timetable { try Self.check(timetable: timetable) }
    }

    static func check(connections: Int32) throws(InputRefusal) {
        guard (1...100_000).contains(connections) else {
            throw InputRefusal(pointer: "/maxConnections", reason: "must be within 1...100000")
        }
    }

    static func check(rate: Int64, at pointer: String) throws(InputRefusal) {
        guard Limits.bytesPerSecond.contains(rate) else {
            throw InputRefusal(
                pointer: pointer,
                reason: "must be within \(Limits.bytesPerSecond.lowerBound)...\(Limits.bytesPerSecond.upperBound)")
        }
    }

    static func check(window: TimeWindow) throws(InputRefusal) {
        do {
            try window.check()
        } catch {
            throw error.within("/between")
        }
    }

    static func check(timetable: [TimetableEntry]) throws(InputRefusal) {
        guard timetable.count <= Limits.timetableEntries else {
            throw InputRefusal(pointer: "/timetable", reason: "at most \(Limits.timetableEntries) entries")
        }
        for (index, entry) in timetable.enumerated() {
            do {
                try entry.check()
            } catch {
                throw error.within("/timetable/\(index)")
            }
        }
    }
}

/// A change of a group's limits.
public struct GroupLimitsPatch: Hashable, Sendable, Codable {
    /// The cap on connections.
    public var maxConnections: Change<Int32>
    /// The rate at times that the timetable does not cover.
    public var bytesPerSecond: Change<Int64>
    /// When the group may run at all.
    public var between: Change<TimeWindow>
    /// The whole timetable.
    public var timetable: Change<[TimetableEntry]>

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxConnections, bytesPerSecond, between, timetable
    }

    /// A change; a limit that isn't named stays.
    public init(
        maxConnections: Change<Int32> = .keep, bytesPerSecond: Change<Int64> = .keep,
        between: Change<TimeWindow> = .keep, timetable: Change<[TimetableEntry]> = .keep
    ) {
        self.maxConnections = maxConnections
        self.bytesPerSecond = bytesPerSecond
        self.between = between
        self.timetable = timetable
    }

    /// Removes every limit: the meaning of `"limits": null`.
    public static let cleared = GroupLimitsPatch(
        maxConnections: .clear, bytesPerSecond: .clear, between: .clear, timetable: .clear)

    /// Reads a change and refuses unknown limits.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        maxConnections = try container.patch(integer: Int32.self, forKey: .maxConnections)
        bytesPerSecond = try container.patch(integer: Int64.self, forKey: .bytesPerSecond)
        between = try container.patch(TimeWindow.self, forKey: .between)
        timetable = try container.patch([TimetableEntry].self, forKey: .timetable)
    }

    /// Writes only what changes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(maxConnections, forKey: .maxConnections)
        try container.encode(bytesPerSecond, forKey: .bytesPerSecond)
        try container.encode(between, forKey: .between)
        try container.encode(timetable, forKey: .timetable)
    }

    /// Throws if a limit is impossible, with the JSON pointer below the limits.
    func check() throws(InputRefusal) {
        try GroupLimits(
            maxConnections: maxConnections.value, bytesPerSecond: bytesPerSecond.value, between: between.value,
            timetable: timetable.value
        ).check()
    }
}
