import MusterAPI
import MusterCore

/// Prints how a group ended, and ends the command with the exit code that says so.
struct GroupResult {
    /// The coordinator.
    let client: MusterClient
    /// Where the result is printed.
    let console: Console

    /// How many failures are named one by one.
    static let shownFailures = 20
    /// How many failures are read to find advice.
    private static let countedFailures = 10_000

    /// Prints the summary, with what failed and why, unless the result is JSON, and throws unless the group succeeded.
    func conclude(_ end: GroupWatcher.End) async throws {
        let status = try await tell(end)
        if status != .success { throw CommandFailure.ended(status) }
    }

    /// Prints the same as ``conclude(_:)``, and returns the exit code that says how the group ended.
    func tell(_ end: GroupWatcher.End) async throws -> ExitStatus {
        let group = end.group
        if !console.json {
            if group.tasks.failed > 0 {
                let failures = try await Self.failures(of: group.name, client)
                // Failures that were printed while they happened are not printed again. The advice is printed in any case.
                let isTold = end.namedFailures >= group.tasks.failed
                for line in isTold ? Self.hints(failures, of: group) : Self.lines(failures, of: group) {
                    console.remark(line)
                }
            }
            try console.line(PlainProgress.summary(group, end.gain))
            if let doubtful = try await DoubtfulFiles.of(group, client) {
                console.remark(doubtful.line)
            }
        }
        return ExitStatus.result(of: group.state) ?? .success
    }

    /// The failed tasks of a group; not all of them if there are more than 10,000.
    static func failures(of group: String, _ client: MusterClient) async throws -> [TaskDocument] {
        var failures: [TaskDocument] = []
        var after: String?
        repeat {
            let page = try await client.tasks(of: group, state: .failed, after: after, limit: Limits.pageSize)
            failures += page.items
            after = page.next
        } while after != nil && failures.count < countedFailures
        return failures
    }

    /// The lines about the first failures, with the commands that tell more.
    static func lines(_ failures: [TaskDocument], of group: GroupDocument) -> [String] {
        var lines = failures.prefix(shownFailures).map(PlainProgress.failure)
        let rest = group.tasks.failed - Int64(lines.count)
        if rest > 0 { lines.append("… and \(rest) more: muster tasks \(ShellWord(group.name)) --state failed") }
        return lines + hints(failures, of: group)
    }

    /// Advice against these failures, and the command that tells more.
    static func hints(_ failures: [TaskDocument], of group: GroupDocument) -> [String] {
        let areAll = Int64(failures.count) >= group.tasks.failed
        var lines = FailureAdvice.groupHints(failures, of: group.name, areAll: areAll).map { "hint: \($0)" }
        if let key = failures.first?.key {
            lines.append("why: \(TextWidth.escaped(FailureText.hint(group: group.name, key: key)))")
        }
        return lines
    }
}
