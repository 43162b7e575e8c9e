import MusterAPI
import MusterCore

/// A group of which nothing is under way though it is not done: what keeps it has to be something that ends. Where its workers are the command's own, nobody
/// else can go on with it.
struct Idleness: Sendable {
    /// What is left of it is not known to the database any more.
    struct Lost: Error, CustomStringConvertible {
        /// How many tasks nobody goes on with.
        let tasks: Int64

        /// What has happened, for people.
        var description: String {
            "nothing is under way of \(tasks == 1 ? "one task" : "\(tasks) tasks") and nothing keeps \(tasks == 1 ? "it" : "them") from that"
        }
    }

    /// How many tasks there are.
    private let count: Int64
    /// In how many looks, one after the other.
    private let looks: Int
    /// Since when.
    private let since: ContinuousClock.Instant
    /// When it was looked at last.
    private let now: ContinuousClock.Instant

    /// How long it lasts before it is asked what keeps it. A group is begun within a second.
    private static let patience: Duration = .seconds(15)
    /// In how many looks it is so at the least: the time for which this process was stopped is in one of them.
    private static let leastLooks = 10

    /// What there is of it now; `nil` where something is under way, or is tried again, or the group itself says what it waits for.
    ///
    /// - Parameter earlier: what there was when the group was looked at before.
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

    /// Asks what keeps the group, once it has lasted.
    ///
    /// - Throws: `Lost` if nothing does.
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
