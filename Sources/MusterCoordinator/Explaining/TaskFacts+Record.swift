import MusterAPI
import MusterCore
import MusterStore

extension TaskFacts {
    /// The facts as they are stored.
    ///
    /// - Parameters:
    ///   - group: the task's group, for the facts about the whole group: its sink, and the trouble of the sink.
    ///   - own: what the coordinator's own process knows.
    init(_ record: ExplanationRecord, of group: GroupRecord, own: OwnProcess) throws {
        let staying = max(0, record.workers.reaching - record.workers.draining)
        self.init(
            task: try TaskDocument(record.task), group: group.name, isGroupPaused: record.group.isPaused,
            prerequisites: group.prerequisites.filter { !$0.isSatisfied }.map(\.group),
            window: GroupFacts.Window(group),
            bytesPerSecondAllowed: group.bytesPerSecondAllowed, groupBytesPerSecond: group.bytesPerSecond,
            sink: group.sink,
            chunks: ExplanationDocument.Chunks(
                done: record.chunks.done, leased: record.chunks.leased, ready: record.chunks.ready,
                waiting: record.chunks.waiting, parked: record.chunks.parked),
            work: record.leases.map { ExplanationDocument.Work($0) },
            shrinking: record.leases.count { $0.isAskedToShrink },
            sources: Self.sources(record),
            attempts: record.attempts.map { ExplanationDocument.Attempt($0) }, isDoubtful: record.isDoubtful,
            nextDue: record.chunks.dueAt,
            awaited: record.chunks.awaited.map { ($0.group, $0.key) },
            question: Self.question(record), origins: Self.origins(record.sources), groupLeases: record.group.leases,
            groupCap: record.group.maxConnections,
            workers: Workers(
                reaching: staying, isSinkParked: group.isSinkParked, parkedDetail: group.parkedDetail,
                freeSlots: record.workers.freeSlots, silent: own.silent(group),
                areAllSilent: group.areAllSilent, own: own.workers(group.sink, leaving: record.workers.draining)),
            deadlineAt: record.deadlineAt, at: record.at)
    }

    private static func question(_ record: ExplanationRecord) -> Question {
        switch record.question {
        case nil: return .none
        case .ready: return .due(nil)
        case .waiting(let moment): return .due(moment)
        case .leased:
            let lease = record.leases.first { $0.kind == .resolve }
            return .asked(worker: lease?.worker ?? lost, since: lease?.grantedAt ?? record.at)
        }
    }

    /// The sources. The bytes of each source are counted where there are several; a single source brought all bytes.
    private static func sources(_ record: ExplanationRecord) -> [ExplanationDocument.Source] {
        var sources = record.sources.map { ExplanationDocument.Source($0) }
        if sources.count == 1, record.task.reusedFrom == nil { sources[0].bytes = record.task.bytesDone }
        return sources
    }

    /// The origins of sources that chunks are ready to be fetched from.
    private static func origins(_ sources: [ExplanationRecord.Source]) -> [Origin] {
        var origins: [Origin] = []
        for source in sources where source.readyChunks > 0 && !origins.contains(where: { $0.key == source.origin.key })
        {
            origins.append(
                Origin(
                    key: source.origin.key, pausedUntil: source.origin.pausedUntil,
                    isTried: source.origin.isTried, leases: source.origin.connections,
                    allowed: source.origin.allowedConnections, limit: source.origin.limit))
        }
        return origins
    }

    /// Stands for a worker whose session is over: its leases are about to be taken back.
    fileprivate static let lost = "(gone)"
}

extension ExplanationDocument.Work {
    /// A lease as it is shown.
    fileprivate init(_ lease: ExplanationRecord.Lease) {
        self.init(
            worker: lease.worker ?? TaskFacts.lost, kind: lease.kind.rawValue, start: lease.start, end: lease.end,
            durable: lease.durable, source: lease.source, since: lease.grantedAt, silentSince: lease.silentSince,
            endsAt: lease.silentSince == nil ? nil : lease.endsAt)
    }
}

extension ExplanationDocument.Source {
    /// A source as it is shown. The URL that a resolver gave for it is left out: such a URL is as good as a key.
    fileprivate init(_ source: ExplanationRecord.Source) {
        let state =
            switch source.state {
            case .usable: "usable"
            case .failed: "failed"
            case .differs: "differs"
            }
        self.init(
            url: source.url, origin: source.origin.key, state: state, failures: source.failures, bytes: source.bytes,
            bytesPerSecond: source.bytesPerSecond, resolvedAt: source.resolvedAt)
    }
}

extension ExplanationDocument.Attempt {
    /// A try as it is shown.
    fileprivate init(_ attempt: ExplanationRecord.Attempt) {
        self.init(
            at: attempt.at, worker: attempt.worker, source: attempt.source, kind: attempt.kind,
            status: attempt.status.map(Int.init), detail: attempt.detail, requestID: attempt.requestID,
            address: attempt.address, offset: attempt.offset, outcome: attempt.outcome)
    }
}
