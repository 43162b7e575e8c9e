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
            if !troubles.isEmpty { document.trouble = troubles }
        }
        document.notes += try await queueNotes([record])[record.id] ?? []
        return document
    }

    /// The documents of groups, in the same order.
    func documents(_ records: [GroupRecord]) async throws -> [GroupDocument] {
        let seconds = try await estimates(records)
        let notes = try await queueNotes(records)
        return try records.map { record in
            var document = try GroupDocument(record, etaSeconds: seconds[record.id], own: own)
            document.notes += notes[record.id] ?? []
            return document
        }
    }

    /// What groups wait for that could run and have nothing under way: a note each, by one query for all of them.
    private func queueNotes(_ records: [GroupRecord]) async throws -> [GroupID: [String]] {
        let idle = records.filter(\.isIdle)
        let queues = try await store.queues(of: idle.map(\.id))
        return idle.reduce(into: [:]) { notes, group in
            let note = queues[group.id].flatMap { WaitSentence.queue($0, sink: group.sink) }
            notes[group.id] = note.map { [$0] }
        }
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
        let situations = try await store.situations(of: promising.map(\.id))
        return try promising.reduce(into: [:]) { seconds, group in
            guard let situation = situations[group.id] else { return }
            seconds[group.id] = try GroupEstimate(facts: GroupFacts(group, situation, own: own)).document.seconds
        }
    }
}

extension GroupRecord {
    /// Whether it has tasks to begin and none under way, while nothing that its row tells of keeps it from that.
    fileprivate var isIdle: Bool {
        guard !state.isTerminal, tasks[.queued, default: 0] > 0, workersPresent > 0, !isSinkParked else { return false }
        guard tasks[.active, default: 0] == 0, tasks[.finalizing, default: 0] == 0 else { return false }
        return !isPaused && !isHeld && isWindowOpen && !isCancelling && !isRemoving
    }
}
