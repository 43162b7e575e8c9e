import MusterAPI
import MusterCore

/// A group whose files are being fetched while no byte arrives. The user is told within seconds, long before the try counts as failed.
struct Silence: Sendable {
    /// Numbers of which at least one changes when anything arrives.
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
    /// Whether something is being fetched now, and no note says what the group waits for.
    private let isFetching: Bool

    /// The most files that are named.
    private static let named = 2

    /// The silence now; `nil` when nothing has been requested since the last byte came. It lasts on between two tries of a file.
    ///
    /// - Parameters:
    ///   - earlier: the result of the previous check.
    ///   - ownsWorkers: whether the workers are those of `get`, which report every second. Workers of a fleet report every three seconds,
    ///     and only bytes that are on the disk.
    init?(_ group: GroupDocument, after earlier: Silence?, ownsWorkers: Bool, now: Timestamp) {
        isFetching = group.tasks.active > 0 && group.tasks.finalizing == 0 && group.notes.isEmpty
        mark = Mark(
            bytes: group.bytes.done, succeeded: group.tasks.succeeded, failed: group.tasks.failed,
            generation: group.generation)
        self.now = now
        patience = .seconds(ownsWorkers ? 4 : 8)
        let last = mark
        let begin = earlier.flatMap { $0.mark == last ? $0.since : nil }
        guard isFetching || begin != nil else { return nil }
        since = begin ?? now
    }

    /// Whether it has lasted long enough to be reported, and still lasts.
    var isLong: Bool { isFetching && now.since(since) >= patience }

    /// A note that names the silent files, with the moment as in JSON; `nil` unless `isLong`.
    func note(of group: GroupDocument, _ client: MusterClient) async throws -> String? {
        guard isLong else { return nil }
        let page = try await client.tasks(of: group.name, state: .active, limit: Self.named)
        return text(page.items, more: page.next == nil ? 0 : group.tasks.active - Int64(page.items.count))
    }

    /// A note that names the silent files, and their origin if all have the same.
    func text(_ tasks: [TaskDocument], more: Int64) -> String? {
        guard !tasks.isEmpty else { return nil }
        // Bytes that are fetched once more, before the place where a body was cut, are nothing new.
        let what = tasks.allSatisfy { $0.bytes.done == 0 } ? "not one byte" : "nothing new"
        let origins = Set(tasks.map { $0.urls.count == 1 ? try? SourceURL(validating: $0.urls[0]).origin : nil })
        let place = origins.count == 1 && more == 0 ? (origins.first ?? nil).map { " from \($0)" } : nil
        return "\(what) has come since \(since) of \(tasks.map(\.path).joined(separator: ", "))"
            + (more > 0 ? " and \(more) more" : "") + (place ?? "")
    }
}
