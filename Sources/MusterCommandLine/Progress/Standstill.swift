import MusterAPI
import MusterCore

/// Files of a group that nobody has begun, while their number stays the same: what keeps them has to be said.
struct Standstill: Sendable {
    /// How many there are.
    let count: Int64
    /// Since when.
    private let since: ContinuousClock.Instant
    /// When they were looked at last.
    private let now: ContinuousClock.Instant

    /// How long their number stays the same before anything is said of them.
    private static let patience: Duration = .seconds(5)

    /// What there is of them now; `nil` where there are none, or nothing is under way.
    ///
    /// - Parameter earlier: what there was when they were looked at before.
    init?(_ group: GroupDocument, after earlier: Standstill?, now: ContinuousClock.Instant) {
        let count = group.tasks.queued - (group.trouble ?? []).reduce(0) { $0 + $1.tasks }
        guard count > 0, group.tasks.active > 0 else { return nil }
        self.count = count
        self.now = now
        since = earlier.flatMap { $0.count == count ? $0.since : nil } ?? now
    }

    /// Whether it has lasted for so long that somebody wonders.
    var isLong: Bool { now - since >= Self.patience }

    /// Since what has all connections they are not begun; `nil` where it is something else, or does not last.
    func note(of group: String, _ client: MusterClient) async throws -> String? {
        guard isLong else { return nil }
        let full: Set<ExplanationDocument.Reason> = [.originFull, .groupFull, .workersBusy]
        let wait = try await client.groupExplanation(of: group).waits.first { full.contains($0.reason) }
        return wait.map { "\(count) not begun: \($0.detail)" }
    }
}
