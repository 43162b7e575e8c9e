import MusterAPI
import MusterCore

extension Settings {
    /// What is wanted of a group: its place among the others, what it may use and when, its deadline, and what it waits for.
    ///
    /// - Throws: `CommandFailure.usage` with the option and the rule.
    func groupPatch() throws(CommandFailure) -> GroupPatch {
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
                between: try change(.between) { settings throws(CommandFailure) in try settings.window() },
                timetable: try change(.rateBetween) { settings throws(CommandFailure) in try settings.timetable() }
            ),
            deadline: try change(.deadline) { settings throws(CommandFailure) in try settings.groupDeadline() },
            onDeadline: try choice(.onDeadline, of: DeadlineAction.self),
            after: try prerequisites()
        )
    }

    /// The zone in which clocks are read where none is named.
    static let defaultTimeZone = "UTC"

    private var timeZone: String { text(.timeZone) ?? Self.defaultTimeZone }

    private func window() throws(CommandFailure) -> TimeWindow? {
        guard let text = text(.between) else { return nil }
        guard let window = TimeWindowArgument(text) else { throw refusal(.between, TimeWindowArgument.rule) }
        return TimeWindow(from: window.from, to: window.to, timeZone: timeZone)
    }

    private func timetable() throws(CommandFailure) -> [TimetableEntry]? {
        var entries: [TimetableEntry] = []
        for word in words(.rateBetween) {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let window = TimeWindowArgument(parts[0]),
                let rate = RateNotation.parse(String(parts[1]))
            else { throw refusal(.rateBetween, "must be a rate in a part of the day, such as 08:00-18:00=2MiB/s") }
            entries.append(
                TimetableEntry(from: window.from, to: window.to, timeZone: timeZone, bytesPerSecond: rate))
        }
        return entries.isEmpty ? nil : entries
    }

    /// The text as it was typed: the database's clock counts it (I11).
    private func groupDeadline() throws(CommandFailure) -> String? {
        guard let duration = try duration(.deadline) else { return nil }
        guard Limits.groupDeadline.contains(duration) else { throw refusal(.deadline, "must be from 1s to 3650d") }
        return text(.deadline)
    }

    /// The groups to wait for; an empty list for `none`, `nil` when nothing was said.
    private func prerequisites() throws(CommandFailure) -> [PrerequisiteRequest]? {
        let words = words(.after)
        if words == [Self.noneWord] { return [] }
        var requests: [PrerequisiteRequest] = []
        for word in words {
            let parts = word.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let condition = parts.count == 1 ? .succeeded : PrerequisiteCondition(rawValue: parts[1])
            guard NameRule.accepts(parts[0]), let condition else {
                let conditions = PrerequisiteCondition.allCases.map(\.rawValue).joined(separator: " or ")
                throw refusal(.after, "must be a group, GROUP:CONDITION with \(conditions), or \(Self.noneWord)")
            }
            requests.append(PrerequisiteRequest(group: parts[0], on: condition))
        }
        return requests.isEmpty ? nil : requests
    }
}

extension GroupPatch {
    /// The same for a group that is about to be made, where taking something away says nothing.
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
