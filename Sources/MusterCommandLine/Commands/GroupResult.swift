import MusterAPI
import MusterCore

/// Tells how a group ended, and ends the command with the exit code that says so.
struct GroupResult {
    /// The coordinator.
    let client: MusterClient
    /// Where it is told.
    let console: Console

    /// How many failures are named one by one.
    static let shownFailures = 20

    /// Prints the summary, with what failed and why, unless the result is JSON, and throws unless the group succeeded.
    func conclude(_ end: GroupWatcher.End) async throws {
        let group = end.group
        if !console.json {
            if group.tasks.failed > 0 {
                let failures = try await failures(of: group)
                // What had its line while it happened needs no other one. What helps is said whenever the group ended.
                let isTold = end.namedFailures >= group.tasks.failed
                for line in isTold ? Self.hints(failures, of: group) : Self.lines(failures, of: group) {
                    console.remark(line)
                }
            }
            try console.line(PlainProgress.summary(group, end.gain))
        }
        if let status = ExitStatus.result(of: group.state), status != .success { throw CommandFailure.ended(status) }
    }

    /// The first failures of a group.
    func failures(of group: GroupDocument) async throws -> [TaskDocument] {
        try await client.tasks(of: group.name, state: .failed, limit: Self.shownFailures).items
    }

    /// The lines about the first failures, with the commands that tell more.
    static func lines(_ failures: [TaskDocument], of group: GroupDocument) -> [String] {
        var lines = failures.map(PlainProgress.failure)
        let rest = group.tasks.failed - Int64(failures.count)
        if rest > 0 { lines.append("… and \(rest) more: muster tasks \(group.name) --state failed") }
        return lines + hints(failures, of: group)
    }

    /// What helps against these failures, and the command that tells more.
    static func hints(_ failures: [TaskDocument], of group: GroupDocument) -> [String] {
        var lines = FailureAdvice.groupHints(failures, of: group.name).map { "hint: \($0)" }
        if let key = failures.first?.key {
            lines.append("why: \(TextWidth.escaped(FailureText.hint(group: group.name, key: key)))")
        }
        return lines
    }
}
