import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/removals`: the files that were to be deleted with their groups, and are still there.
struct RemovalRoutes: Sendable {
    let store: Store

    func add(to group: RouterGroup<some RequestContext>) {
        group.get("removals") { request, _ in
            let limit = try request.pageLimit()
            let removals = try await store.removals(after: try request.query("after"), limit: limit)
            let next = removals.count == Int(limit) ? removals.last?.group : nil
            return try Answer.json(Page(items: removals.map { RemovalDocument($0) }, next: next))
        }
        group.get("removals/:name") { _, context in
            let name = try context.path("name")
            guard NameRule.accepts(name) else {
                throw Problem(.invalidRequest, "the name of a group \(NameRule.explanation)")
            }
            return try Answer.json(try await RemovalDocument(name, store))
        }
    }
}

extension RemovalDocument.Fate {
    /// A fate as it is shown.
    init(_ fate: RemovalFate) { self.init(toDelete: fate.toDelete, kept: fate.kept, keptBy: fate.keptBy) }
}

extension RemovalDocument {
    /// A removal as it is shown.
    fileprivate init(_ record: RemovalRecord) {
        self.init(
            group: record.group, sink: record.sink, files: record.files, workersReaching: record.workersReaching)
        failure = record.failure.map { Failure(files: record.failed, detail: $0) }
    }

    /// The unfinished rest of a group's removal, if any, and the outcome of what is done.
    init(_ group: String, _ store: Store) async throws {
        if let record = try await store.removal(of: group) {
            self.init(record)
        } else {
            self.init(group: group, sink: nil, files: 0, workersReaching: 0)
        }
        if try await store.isRemoving(group) { pending = true }
        outcome = try await store.removalOutcome(of: group).map {
            Outcome(deleted: $0.deleted, changed: $0.changed, missing: $0.missing)
        }
    }
}
