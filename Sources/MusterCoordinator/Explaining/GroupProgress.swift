import MusterAPI
import MusterCore
import MusterStore

/// Groups as they are shown. There is one estimate for each group, so that a status and an explanation agree.
struct GroupProgress: Sendable {
    let store: Store
    /// What the coordinator's own process knows.
    let own: OwnProcess

    /// The document of a group.
    func document(_ record: GroupRecord) async throws -> GroupDocument {
        var document = try GroupDocument(
            record, etaSeconds: try await estimates([record])[record.id], own: own)
        if !record.state.isTerminal {
            let troubles = try await store.troubles(of: record.id)
            if !troubles.isEmpty { document.trouble = troubles.map { .init(kind: $0.kind, tasks: $0.tasks) } }
        }
        return document
    }

    /// The documents of groups, in the same order.
    func documents(_ records: [GroupRecord]) async throws -> [GroupDocument] {
        let seconds = try await estimates(records)
        return try records.map { try GroupDocument($0, etaSeconds: seconds[$0.id], own: own) }
    }

    /// Tasks of a group as they are shown. No task takes longer than its group: under a shared rate, the last tasks get
    /// what the others leave.
    func documents(_ tasks: [TaskRecord], of group: String) async throws -> [TaskDocument] {
        var documents = try tasks.map { try TaskDocument($0) }
        guard documents.contains(where: { $0.etaSeconds != nil }) else { return documents }
        let record = try await store.group(group)
        guard let most = try await estimates([record])[record.id] else { return documents }
        for index in documents.indices {
            documents[index].etaSeconds = documents[index].etaSeconds.map { min($0, most) }
        }
        return documents
    }

    /// Estimated seconds until groups are done, where an estimate is possible. For most groups the row alone says that it
    /// is not. No more is read of these, since other facts of a group can only make its end later.
    private func estimates(_ records: [GroupRecord]) async throws -> [GroupID: Int64] {
        let promising = try records.filter {
            try GroupEstimate(facts: GroupFacts($0, own: own)).document.seconds != nil
        }
        guard !promising.isEmpty else { return [:] }
        return try await store.explanations(of: promising).reduce(into: [:]) { seconds, record in
            seconds[record.group.id] = try GroupEstimate(facts: GroupFacts(record, own: own)).document.seconds
        }
    }
}
