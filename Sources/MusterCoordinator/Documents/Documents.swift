import FoundationEssentials
import MusterAPI
import MusterCore
import MusterStore

/// What the store says, in the words of the API.
enum StoredJSON {
    /// A JSON value that was checked before it was stored.
    static func value(_ text: String?) -> JSONValue? {
        text.flatMap { try? JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }
    }

    /// An object whose values are texts: digests, headers, labels.
    static func texts(_ text: String?) -> [String: String] {
        text.flatMap { try? JSONDecoder().decode([String: String].self, from: Data($0.utf8)) } ?? [:]
    }

    /// A document that was checked before it was stored.
    static func document<Document: Decodable>(_ type: Document.Type, _ text: String?) -> Document? {
        text.flatMap { try? JSONDecoder().decode(type, from: Data($0.utf8)) }
    }

    /// A value as the store wants it.
    static func text(_ value: (some Encodable)?) throws -> String? {
        try value.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
    }
}

extension GroupDocument {
    /// A group as it is shown. Progress is what the store counts; the estimate is left out where it would be a guess.
    init(_ record: GroupRecord) {
        let live = record.state.isTerminal ? 0 : record.bytesPerSecond
        let isKnown = record.unknownTasks == 0
        let rest = max(0, record.bytesTotal - record.bytesDone)
        self.init(
            name: record.name, state: record.state, generation: record.generation, sealed: record.state != .open,
            sink: record.sink, priority: record.priority, weight: record.weight,
            limits: GroupLimits(maxConnections: record.maxConnections), metadata: StoredJSON.value(record.metadata),
            tasks: TaskCounts(record.tasks),
            bytes: Bytes(done: record.bytesDone, total: record.bytesTotal, unknownTasks: record.unknownTasks),
            bytesPerSecond: live, etaSeconds: isKnown && live > 0 ? (rest + live - 1) / live : nil,
            createdAt: record.createdAt, finishedAt: record.finishedAt, notes: Self.notes(record),
            policy: StoredJSON.document(TransferPolicy.self, record.policy),
            resolver: StoredJSON.document(Resolver.self, record.resolver).map(ResolverDocument.init),
            fetchOptions: record.optionNames.isEmpty ? nil : record.optionNames)
    }

    /// What keeps the group from going on.
    private static func notes(_ record: GroupRecord) -> [String] {
        guard !record.state.isTerminal else { return [] }
        var notes: [String] = []
        let unfinished = [TaskState.queued, .active, .finalizing].reduce(0) { $0 + (record.tasks[$1] ?? 0) }
        if unfinished > 0, record.workersReaching == 0 {
            notes.append(
                "no live worker reaches the sink \"\(record.sink)\"; start one with: muster work --sink \(record.sink)=DIR"
            )
        } else if unfinished > 0, record.workersParked > 0 {
            let where_ =
                record.workersParked == record.workersReaching ? "every worker" : "\(record.workersParked) workers"
            let why = record.parkedDetail.map { ": \($0)" } ?? ""
            notes.append(
                "the sink \"\(record.sink)\" is in trouble at \(where_)\(why); it goes on by itself when that is over")
        }
        if let paused = record.tasks[.paused], paused > 0 {
            notes.append("\(paused) paused tasks hold it open; go on with: muster resume \(record.name)")
        }
        if record.state == .open, unfinished == 0, (record.tasks[.paused] ?? 0) == 0 {
            notes.append("it is open for more tasks; complete it with: muster seal \(record.name)")
        }
        return notes
    }
}

extension GroupDocument.TaskCounts {
    /// Counts by state. Cancelled tasks have left the total.
    fileprivate init(_ counts: [TaskState: Int64]) {
        func count(_ state: TaskState) -> Int64 { counts[state] ?? 0 }
        self.init(
            total: counts.reduce(0) { $0 + ($1.key == .cancelled ? 0 : $1.value) }, queued: count(.queued),
            active: count(.active), paused: count(.paused), finalizing: count(.finalizing),
            succeeded: count(.succeeded),
            failed: count(.failed), cancelled: count(.cancelled))
    }
}

extension TaskDocument {
    /// A task as it is shown. A failure that was overcome is not shown any more.
    init(_ record: TaskRecord) {
        self.init(
            key: record.key, state: record.state, urls: record.urls, path: record.path, size: record.expectedSize,
            priority: record.priority, metadata: StoredJSON.value(record.metadata),
            bytes: Bytes(done: record.bytesDone, total: record.size), contentVersion: record.version, etag: record.etag,
            lastModified: record.lastModified, effectiveURL: record.effectiveURL,
            digests: StoredJSON.texts(record.digests), attempts: record.attempts,
            failure: record.failure.map(FailureDocument.init),
            createdAt: record.createdAt, startedAt: record.startedAt, finishedAt: record.finishedAt)
    }
}

extension FailureDocument {
    /// A failure as it is shown.
    init(_ failure: TaskFailure) {
        self.init(
            kind: failure.kind, detail: failure.detail, at: failure.at, status: failure.status.map(Int.init),
            source: failure.source, requestID: failure.requestID)
    }
}

extension EventDocument {
    /// An event as a CloudEvent.
    init(_ record: EventRecord) {
        self.init(
            id: record.id, type: record.type, subject: record.subject, time: record.time, position: record.position,
            data: StoredJSON.value(record.data) ?? .null)
    }
}

extension WorkerDocument {
    /// A live session as it is shown.
    init(_ record: WorkerRecord) {
        let sinks = try? JSONDecoder().decode([SinkStatus].self, from: Data(record.sinkStatus.utf8))
        self.init(
            name: record.worker, session: record.session, state: record.isDraining ? "draining" : "ready",
            version: record.version, sinks: sinks ?? [], slots: Int(record.slots), leases: record.leases,
            bytesPerSecond: record.bytesPerSecond, startedAt: record.openedAt, lastSeenAt: record.seenAt,
            labels: StoredJSON.texts(record.labels))
    }
}
