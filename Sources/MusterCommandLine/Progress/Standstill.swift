import MusterAPI
import MusterCore

/// Files of a group that no worker has begun, while their number stays the same: the user is told the reason.
struct Standstill: Sendable {
    /// The number of these files.
    let count: Int64
    /// When this number was first seen.
    private let since: ContinuousClock.Instant
    /// When the latest check was.
    private let now: ContinuousClock.Instant

    /// How long their number stays the same before the user is told.
    private static let patience: Duration = .seconds(5)

    /// The standstill now; `nil` when there are no such files, or nothing is under way.
    ///
    /// - Parameter earlier: the result of the previous check.
    init?(_ group: GroupDocument, after earlier: Standstill?, now: ContinuousClock.Instant) {
        let count = group.tasks.queued - (group.trouble ?? []).reduce(0) { $0 + $1.tasks }
        guard count > 0, group.tasks.active > 0 else { return nil }
        self.count = count
        self.now = now
        since = earlier.flatMap { $0.count == count ? $0.since : nil } ?? now
    }

    /// Whether it has lasted long enough to be reported.
    var isLong: Bool { now - since >= Self.patience }

    /// A note that the files wait because all connections or workers are in use; `nil` for any other reason, and unless `isLong`.
    func note(of group: String, _ client: MusterClient) async throws -> String? {
        guard isLong else { return nil }
        let full: Set<ExplanationDocument.Reason> = [.originFull, .groupFull, .workersBusy]
        let waits = try await client.groupExplanation(of: group).waits.filter { full.contains($0.reason) }
        // Without a free slot, a file of any origin waits.
        let wait = waits.first { $0.reason == .workersBusy } ?? waits.first
        return wait.map { "\(count) not begun: \($0.detail)" }
    }
}
