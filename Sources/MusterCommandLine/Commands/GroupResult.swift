import MusterAPI
import MusterCore

/// Tells how a group ended, and ends the command with the exit code that says so.
struct GroupResult {
    /// The coordinator.
    let client: MusterClient
    /// Where it is told.
    let console: Console

    /// How many failures are named one by one.
    private static let shownFailures = 20

    /// Prints the summary, with what failed and why, unless the result is JSON, and throws unless the group succeeded.
    func conclude(_ group: GroupDocument, namesFailures: Bool = true) async throws {
        if !console.json {
            if namesFailures, group.tasks.failed > 0 {
                for task in try await failures(of: group) { try console.line(PlainProgress.failure(task)) }
                let rest = group.tasks.failed - Int64(Self.shownFailures)
                if rest > 0 { try console.line("… and \(rest) more: muster tasks \(group.name) --state failed") }
            }
            try console.line(PlainProgress.summary(group))
        }
        if let status = ExitStatus.result(of: group.state), status != .success { throw CommandFailure.ended(status) }
    }

    /// The first failures of a group.
    func failures(of group: GroupDocument) async throws -> [TaskDocument] {
        try await client.tasks(of: group.name, state: .failed, limit: Self.shownFailures).items
    }
}
