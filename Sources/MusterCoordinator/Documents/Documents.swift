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
            createdAt: record.createdAt, startedAt: record.startedAt, finishedAt: record.finishedAt,
            contentType: record.contentType, deadlineAt: record.deadlineAt,
            fetchOptions: record.optionNames.isEmpty ? nil : record.optionNames, bytesPerSecond: record.bytesPerSecond,
            reusedFrom: record.reusedFrom)
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
            labels: StoredJSON.texts(record.labels), bytesPerSecondLimit: record.bytesPerSecondLimit)
    }
}
