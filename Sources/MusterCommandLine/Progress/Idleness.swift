import MusterAPI
import MusterCore

/// A group that is not done although nothing of it is under way. The reason must be temporary: where the workers belong to the command, no
/// other worker can go on with the group.
struct Idleness: Sendable {
    /// No worker goes on with the rest of the group, and nothing explains that: the database no longer knows of it.
    struct Lost: Error, CustomStringConvertible {
        /// How many tasks no worker goes on with.
        let tasks: Int64

        /// The message for the user.
        var description: String {
            "nothing is under way of \(tasks == 1 ? "one task" : "\(tasks) tasks") and nothing keeps \(tasks == 1 ? "it" : "them") from that"
        }
    }

    /// The number of queued tasks.
    private let count: Int64
    /// The number of consecutive checks that found this number.
    private let looks: Int
    /// When the first of these checks was.
    private let since: ContinuousClock.Instant
    /// When the latest check was.
    private let now: ContinuousClock.Instant

    /// How long the idleness lasts before the coordinator is asked for the reason. Normally a group is begun within a second.
    private static let patience: Duration = .seconds(15)
    /// The least number of checks that must find it: the time for which this process was stopped lies between two checks.
    private static let leastLooks = 10

    /// The idleness now; `nil` when something is under way or is tried again, or a note of the group says what it waits for.
    ///
    /// - Parameter earlier: the result of the previous check.
    init?(_ group: GroupDocument, after earlier: Idleness?, now: ContinuousClock.Instant) {
        guard group.tasks.queued > 0, group.tasks.active == 0, group.tasks.finalizing == 0, group.notes.isEmpty,
            (group.trouble ?? []).isEmpty
        else { return nil }
        count = group.tasks.queued
        self.now = now
        let last = earlier.flatMap { [count] in $0.count == count ? $0 : nil }
        looks = (last?.looks ?? 0) + 1
        since = last?.since ?? now
    }

    /// Asks the coordinator for the reason, once the idleness has lasted.
    ///
    /// - Throws: `Lost` if there is none.
    func check(_ group: String, _ client: MusterClient) async throws {
        guard looks >= Self.leastLooks, now - since >= Self.patience else { return }
        let reasons = Set(try await client.groupExplanation(of: group).waits.map(\.reason))
        guard reasons.subtracting([.workersBusy, .unsealed, .paused]).isEmpty else { return }
        // Workers that hold nothing are not busy.
        if reasons.contains(.workersBusy), try await client.workers().items.contains(where: { $0.leases > 0 }) {
            return
        }
        throw Lost(tasks: count)
    }
}
