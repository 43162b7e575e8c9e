import MusterAPI
import MusterCore

/// A group of which files are being fetched while no byte comes: the person who waits is told within seconds, long before the try counts as failed.
struct Silence: Sendable {
    /// What changes when anything comes.
    private struct Mark: Hashable {
        let bytes: Int64
        let succeeded: Int64
        let failed: Int64
        let generation: Int32
    }

    private let mark: Mark
    /// Since when nothing has come.
    let since: Timestamp
    private let now: Timestamp
    private let patience: Duration

    /// The most files that are named.
    private static let named = 2

    /// What there is of it now; `nil` where nothing is being fetched, or the group itself says what it waits for.
    ///
    /// - Parameters:
    ///   - earlier: what there was when the group was looked at before.
    ///   - ownsWorkers: whether the workers are those of `get`, which report every second. Those of a fleet report every three seconds, and what
    ///     they report is on the disk by then.
    init?(_ group: GroupDocument, after earlier: Silence?, ownsWorkers: Bool, now: Timestamp) {
        guard group.tasks.active > 0, group.tasks.finalizing == 0, group.notes.isEmpty else { return nil }
        mark = Mark(
            bytes: group.bytes.done, succeeded: group.tasks.succeeded, failed: group.tasks.failed,
            generation: group.generation)
        self.now = now
        patience = .seconds(ownsWorkers ? 4 : 8)
        let last = mark
        since = earlier.flatMap { $0.mark == last ? $0.since : nil } ?? now
    }

    /// Whether it has lasted for so long that somebody wonders.
    var isLong: Bool { now.since(since) >= patience }

    /// Which files nothing comes of, with the moment as in JSON; `nil` while it does not last.
    func note(of group: GroupDocument, _ client: MusterClient) async throws -> String? {
        guard isLong else { return nil }
        let page = try await client.tasks(of: group.name, state: .active, limit: Self.named)
        return text(page.items, more: page.next == nil ? 0 : group.tasks.active - Int64(page.items.count))
    }

    /// Which files nothing comes of, and where they are fetched from if that is one origin.
    func text(_ tasks: [TaskDocument], more: Int64) -> String? {
        guard !tasks.isEmpty else { return nil }
        // What comes once more, before the place where a body was cut, is nothing new.
        let what = tasks.allSatisfy { $0.bytes.done == 0 } ? "not one byte" : "nothing new"
        let origins = Set(tasks.map { $0.urls.count == 1 ? try? SourceURL(validating: $0.urls[0]).origin : nil })
        let place = origins.count == 1 && more == 0 ? (origins.first ?? nil).map { " from \($0)" } : nil
        return "\(what) has come since \(since) of \(tasks.map(\.path).joined(separator: ", "))"
            + (more > 0 ? " and \(more) more" : "") + (place ?? "")
    }
}
