import MusterAPI
import MusterCore
import MusterStore

/// Groups as they are shown, each with the one estimate that there is of it: a status and an explanation say the same.
struct GroupProgress: Sendable {
    let store: Store
    /// What the coordinator's own process knows.
    let own: OwnProcess

    /// A group.
    func document(_ record: GroupRecord) async throws -> GroupDocument {
        var document = try GroupDocument(
            record, etaSeconds: try await estimates([record])[record.id], own: own)
        if !record.state.isTerminal {
            let troubles = try await store.troubles(of: record.id)
            if !troubles.isEmpty { document.trouble = troubles.map { .init(kind: $0.kind, tasks: $0.tasks) } }
        }
        return document
    }

    /// Groups, in the same order.
    func documents(_ records: [GroupRecord]) async throws -> [GroupDocument] {
        let seconds = try await estimates(records)
        return try records.map { try GroupDocument($0, etaSeconds: seconds[$0.id], own: own) }
    }

    /// Tasks of a group as they are shown. None takes longer than its group: under a rate that all of them share, the last ones get what the others leave.
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

    /// In how many seconds groups will be done, where that can be told. Of most of them the row alone says that it can't: they are
    /// not looked at more closely, since what else is known of a group can only put its end off.
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
