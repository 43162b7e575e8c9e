import MusterAPI
import MusterCore

extension Settings {
    /// The settings of a group: its priority and weight, its limits, its deadline, and the groups that it waits for.
    ///
    /// - Parameter standingZone: the zone in which times of day are read when none is named.
    /// - Throws: `CommandFailure.usage` with the option and the rule.
    func groupPatch(standingZone: String = defaultTimeZone) throws(CommandFailure) -> GroupPatch {
        let zone = text(.timeZone) ?? standingZone
        let priorities = Int(Limits.priority.lowerBound)...Int(Limits.priority.upperBound)
        let weights = Int(Limits.weight.lowerBound)...Int(Limits.weight.upperBound)
        return GroupPatch(
            priority: try number(.priority, in: priorities).map(Int32.init),
            weight: try number(.weight, in: weights).map(Int32.init),
            limits: GroupLimitsPatch(
                maxConnections: try change(.maxConnections) { settings throws(CommandFailure) in
                    try settings.number(.maxConnections, in: 1...100_000).map(Int32.init)
                },
                bytesPerSecond: try change(.rate) { settings throws(CommandFailure) in try settings.rate(.rate) },
                between: try change(.between) { settings throws(CommandFailure) in try settings.window(zone) },
                timetable: try change(.rateBetween) { settings throws(CommandFailure) in
                    try settings.timetable(zone)
                }
            ),
            deadline: try change(.deadline) { settings throws(CommandFailure) in try settings.groupDeadline() },
            onDeadline: try choice(.onDeadline, of: DeadlineAction.self),
            after: try prerequisites()
        )
    }

    /// The zone in which times of day are read if none was ever named.
    static let defaultTimeZone = "UTC"

    private func window(_ zone: String) throws(CommandFailure) -> TimeWindow? {
        guard let text = text(.between) else { return nil }
        guard let window = TimeWindowArgument(text), !window.isEmpty else {
            throw refusal(.between, TimeWindowArgument.rule)
        }
        return TimeWindow(from: window.from, to: window.to, timeZone: zone)
    }

    private func timetable(_ zone: String) throws(CommandFailure) -> [TimetableEntry]? {
        var entries: [TimetableEntry] = []
        for word in words(.rateBetween) {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let window = TimeWindowArgument(parts[0]), !window.isEmpty,
                let rate = RateNotation.parse(String(parts[1]))
            else { throw refusal(.rateBetween, "must be a rate in a part of the day, such as 08:00-18:00=2MiB/s") }
            entries.append(
                TimetableEntry(from: window.from, to: window.to, timeZone: zone, bytesPerSecond: rate))
        }
        return entries.isEmpty ? nil : entries
    }

    /// The text as it was typed: the database's clock counts the time (I11).
    private func groupDeadline() throws(CommandFailure) -> String? {
        guard let duration = try duration(.deadline) else { return nil }
        guard Limits.groupDeadline.contains(duration) else { throw refusal(.deadline, "must be from 1s to 3650d") }
        return text(.deadline)
    }

    /// The groups to wait for; an empty list for `none`, `nil` when the option is absent.
    private func prerequisites() throws(CommandFailure) -> [GroupPrerequisite]? {
        let words = words(.after)
        if words == [Self.noneWord] { return [] }
        var requests: [GroupPrerequisite] = []
        for word in words {
            let parts = word.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let condition = parts.count == 1 ? .succeeded : PrerequisiteCondition(rawValue: parts[1])
            guard NameRule.accepts(parts[0]), let condition else {
                let conditions = PrerequisiteCondition.allCases.map(\.rawValue).joined(separator: " or ")
                throw refusal(.after, "must be a group, GROUP:CONDITION with \(conditions), or \(Self.noneWord)")
            }
            requests.append(GroupPrerequisite(group: parts[0], on: condition))
        }
        return requests.isEmpty ? nil : requests
    }
}

extension GroupPatch {
    /// Applies the patch to the request for a new group, for which a cleared field is the same as an absent one.
    func apply(to request: inout GroupRequest) {
        request.priority = priority
        request.weight = weight
        let limits = GroupLimits(
            maxConnections: limits.maxConnections.value,
            bytesPerSecond: limits.bytesPerSecond.value,
            between: limits.between.value,
            timetable: limits.timetable.value
        )
        if limits != GroupLimits() { request.limits = limits }
        request.deadline = deadline.value
        request.onDeadline = onDeadline
        if let after, !after.isEmpty { request.after = after }
    }
}

extension GroupLimits {
    /// The zone in which a group's times of day are read: that of its window, or of its timetable of rates.
    var standingZone: String? { between?.timeZone ?? timetable?.lazy.compactMap(\.timeZone).first }
}
