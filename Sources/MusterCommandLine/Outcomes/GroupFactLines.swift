import MusterAPI
import MusterCore

/// Facts about a group as `name: value` lines.
enum GroupFactLines {
    /// All facts about a group, in the order in which they are shown.
    static func all(_ group: GroupDocument, clock: WallClock = .ofThisMachine) -> [(String, String)] {
        let tasks = group.tasks
        let counts = [
            (tasks.succeeded, "succeeded"), (tasks.active, "active"), (tasks.finalizing, "finalizing"),
            (tasks.queued, "queued"), (tasks.paused, "paused"), (tasks.failed, "failed"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let snapshot = ProgressSnapshot(group: group)
        let unknown = group.bytes.unknownTasks
        var facts: [(String, String)] = [
            ("group", group.name),
            ("state", state(group) + (group.sealed || group.state.isTerminal ? "" : " (not sealed)")),
            ("generation", "\(group.generation)"),
            ("sink", group.sink),
        ]
        facts += limits(group, clock: clock)
        facts += [
            (
                "tasks",
                "\(tasks.total)" + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", "))
                    + cancelled(tasks.cancelled)
            ),
            ("bytes", snapshot.bytesText + (unknown > 0 ? " (size unknown of \(unknown))" : "")),
        ]
        if let trouble = group.trouble {
            let kinds = trouble.map { "\($0.kind.title(status: nil, isDecided: false)) (\($0.tasks))" }
            facts.append(("retrying", kinds.joined(separator: ", ")))
        }
        if let speed = snapshot.speedText {
            facts.append(("speed", speed))
            if let eta = group.etaSeconds { facts.append(("ETA", DurationNotation.format(.seconds(eta)))) }
        }
        facts.append(("created", clock.text(group.createdAt)))
        if let finished = group.finishedAt { facts.append(("finished", clock.text(finished))) }
        return facts + group.notes.map { ("note", clock.sentence($0)) }
    }

    /// ` (2 more were cancelled)`: cancelled tasks don't count in the total.
    private static func cancelled(_ count: Int64) -> String {
        count == 0 ? "" : " (\(count) more \(count == 1 ? "was" : "were") cancelled)"
    }

    /// The state to show: `removing` while the group is removed, or else its own.
    static func state(_ group: GroupDocument) -> String {
        group.removing == true ? RemovalDocument.state : group.state.rawValue
    }

    /// The group's priority, weight and limits; limits that are not set are left out.
    static func limits(_ group: GroupDocument, clock: WallClock = .ofThisMachine) -> [(String, String)] {
        var facts = [("priority", "\(group.priority)" + (group.weight == 1 ? "" : ", weight \(group.weight)"))]
        let limits = group.limits
        var caps: [String] = []
        if let most = limits.maxConnections { caps.append("\(most) connection\(most == 1 ? "" : "s")") }
        if let rate = limits.bytesPerSecond { caps.append(ProgressSnapshot.rate(rate)) }
        var most = caps.isEmpty ? [] : [caps.joined(separator: ", ")]
        most += (limits.timetable ?? []).map { entry in
            let zone = entry.timeZone ?? limits.between?.timeZone ?? Settings.defaultTimeZone
            let window = hours(entry.from, entry.to, zone: zone)
            return "\(ProgressSnapshot.rate(entry.bytesPerSecond)) \(window)"
        }
        facts += most.enumerated().map { ($0 == 0 ? "at most" : "", $1) }
        if let window = limits.between {
            facts.append(("runs", hours(window.from, window.to, zone: window.timeZone)))
        }
        // The deadline of an ended group begins anew when the group goes on.
        if let deadline = group.deadlineAt, !group.state.isTerminal {
            let action =
                switch group.onDeadline ?? .fail {
                case .fail: "then fails"
                case .continue: group.overdue == true ? "overdue, goes on" : "goes on after it"
                }
            facts.append(("deadline", "\(clock.text(deadline)), \(action)"))
        }
        for prerequisite in group.after ?? [] {
            let condition = prerequisite.on == .succeeded ? "" : " \(prerequisite.on.rawValue)"
            let standing = prerequisite.satisfied ? " (satisfied)" : group.state.isTerminal ? "" : " (waiting)"
            facts.append(("after", "\(prerequisite.group)\(condition)\(standing)"))
        }
        return facts
    }

    private static func hours(_ from: String, _ to: String, zone: String) -> String {
        from == to ? "at all times" : "from \(from) to \(to) \(zone)"
    }
}

/// Formats facts as lines.
enum FactLines {
    /// Lines of `name:` and value, aligned in two columns; a fact without a name belongs to the one above.
    static func lines(_ facts: [(String, String)]) -> [String] {
        facts.map { TextWidth.padded($0.0.isEmpty ? "" : "\($0.0):", to: 12) + TextWidth.escaped($0.1) }
    }
}
