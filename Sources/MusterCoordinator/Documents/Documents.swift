import MusterAPI
import MusterCore
import MusterStore

extension TaskDocument {
    /// A task as it is shown. A failure that was overcome is not shown any more.
    init(_ record: TaskRecord) throws {
        let row = "task \(record.id)"
        self.init(
            key: record.key, state: record.state, urls: record.urls, path: record.path, createdAt: record.createdAt)
        size = record.expectedSize
        priority = record.priority
        metadata = try StoredJSON.document(JSONValue.self, ifAny: record.metadata, column: "tasks.metadata", of: row)
        bytes = Bytes(done: record.bytesDone, total: record.size)
        contentVersion = record.version
        etag = record.etag
        lastModified = record.lastModified
        effectiveURL = record.effectiveURL
        digests = try StoredJSON.texts(record.digests, column: "tasks.digests", of: row)
        crc32c = record.contentCRC
        attempts = record.attempts
        failure = record.failure
        retry = record.retry
        startedAt = record.startedAt
        finishedAt = record.finishedAt
        contentType = record.contentType
        deadlineAt = record.deadlineAt
        fetchOptions = record.optionNames.isEmpty ? nil : record.optionNames
        bytesPerSecond = record.bytesPerSecond
        reusedFrom = record.reusedFrom
        etaSeconds = Self.seconds(record)
    }

    /// Estimated seconds until all bytes are fetched at the current speed. `nil` while nothing arrives, while the size is
    /// unknown, or when the window of its group closes before that.
    private static func seconds(_ record: TaskRecord) -> Int64? {
        guard record.state == .active, let size = record.size else { return nil }
        return Pace.seconds(
            size - record.bytesDone, at: record.bytesPerSecond, atLeast: record.secondsAtLeast,
            within: record.secondsInWindow)
    }
}

extension EventDocument {
    /// An event as a CloudEvent.
    init(_ record: EventRecord) throws {
        self.init(
            id: record.id, type: record.type, subject: record.subject, time: record.time, position: record.position,
            data: try StoredJSON.document(
                JSONValue.self, record.data, column: "events.data", of: "event \(record.id)"))
    }
}

extension WorkerDocument {
    /// A live session as it is shown.
    init(_ record: WorkerRecord) throws {
        let row = "session \(record.session)"
        self.init(
            name: record.worker, session: record.session, version: record.version, startedAt: record.openedAt,
            lastSeenAt: record.seenAt)
        if record.isDraining { state = "draining" }
        sinks = try StoredJSON.document(
            [SinkStatus].self, record.sinkStatus, column: "sessions.sink_status", of: row)
        slots = Int(record.slots)
        leases = record.inHand.leases
        bytesPerSecond = record.bytesPerSecond
        silentSince = record.isSilent ? record.seenAt : nil
        labels = try StoredJSON.texts(record.labels, column: "sessions.labels", of: row)
        bytesPerSecondLimit = record.bytesPerSecondLimit
        sharesName = record.sharesName ? true : nil
        bytes = LeaseProgress(record.inHand)
        // A draining worker gives back its unfinished work within seconds.
        etaSeconds = record.isSilent || record.isDraining ? nil : record.inHand.seconds(at: record.bytesPerSecond)
    }
}

extension OriginDocument {
    /// An origin as it is shown; `cap` applies to origins that have no cap of their own.
    init(_ record: OriginRecord, cap: Int32) {
        self.init(
            key: record.key, maxConnections: record.maxConnections ?? cap,
            allowedConnections: record.allowedConnections, connections: record.connections)
        pausedUntil = record.pausedUntil
        limitedAt = record.limitedAt
        bytesPerSecond = record.bytesPerSecond
        bytesPerSecondLimit = record.bytesPerSecondLimit
        bytes = LeaseProgress(record.inHand)
        etaSeconds = record.inHand.seconds(at: record.bytesPerSecond)
        note =
            record.secondsOut.map(WaitSentence.outage) ?? record.limit.map(WaitSentence.limit)
            ?? record.secondsSinceRefusal.map {
                "a refusal \(DurationNotation.format(.seconds($0))) ago was taken for one of too much at once"
            }
    }
}

extension LeaseProgress {
    /// Progress as it is shown.
    fileprivate init(_ sums: LeasedBytes) {
        self.init(done: sums.done, total: sums.total, unknownLeases: sums.unknown)
    }
}

extension LeasedBytes {
    /// Estimated seconds until all leased bytes are fetched at the current speed; `nil` when nothing is being fetched, or
    /// when a size is unknown.
    fileprivate func seconds(at speed: Int64) -> Int64? {
        guard fetching > 0, unknown == 0 else { return nil }
        return Pace.seconds(total - done, at: speed, atLeast: slowestSeconds)
    }
}
