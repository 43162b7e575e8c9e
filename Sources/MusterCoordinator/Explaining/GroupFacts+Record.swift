import MusterAPI
import MusterCore
import MusterStore

extension GroupFacts {
    /// The facts in the group's own row; nothing about its chunks.
    ///
    /// - Parameter own: what the coordinator's own process knows.
    init(_ group: GroupRecord, own: OwnProcess) throws {
        self.init(
            group: try GroupDocument(group, etaSeconds: nil, own: own), isPaused: group.isPaused,
            prerequisites: group.prerequisites.filter { !$0.isSatisfied }.map { other in
                Prerequisite(group: other.group, on: other.on, state: other.state)
            },
            window: Window(group), bytesPerSecondAllowed: group.bytesPerSecondAllowed, connections: 0, questions: 0,
            placing: 0, putOff: PutOff(chunks: .none, firstDue: nil), origins: [], hasMoreOrigins: false,
            straggler: nil,
            workers: TaskFacts.Workers(
                reaching: group.workersReaching, isSinkParked: group.isSinkParked, parkedDetail: group.parkedDetail,
                freeSlots: 0, silent: own.silent(group), areAllSilent: group.areAllSilent,
                own: own.workers(group.sink)),
            fleet: nil, at: group.at)
    }

    /// All facts as they are stored.
    init(_ record: GroupExplanationRecord, own: OwnProcess) throws {
        try self.init(record.group, own: own)
        lost = record.lost.map { Prerequisite(group: $0.group, on: $0.on, state: $0.state) }
        failures = record.failures.map { failure in
            let reason = failure.kind?.text(
                status: failure.status.map(Int.init), source: nil, detail: failure.detail ?? "", isDecided: true)
            return (key: failure.key, reason: reason ?? "")
        }
        if record.doubtful.tasks > 0 {
            doubtful = .init(tasks: record.doubtful.tasks, keys: record.doubtful.keys)
        }
        roomlessTasks = record.roomless.tasks
        roomless = record.roomless.first.map { (key: $0.key, reason: $0.detail ?? "") }
        retried = record.retried.flatMap { retried in
            retried.failure.kind?.text(
                status: retried.failure.status.map(Int.init), source: retried.origin, detail: "", isDecided: false)
        }
        connections = record.leases.connections
        questions = record.leases.asking + record.putOff.asking
        placing = record.leases.finalizing
        putOff = PutOff(
            chunks: Count(record.putOff.fetching + record.putOff.finalizing + record.putOff.awaiting),
            awaiting: record.putOff.awaiting, awaited: record.putOff.awaited.map { ($0.group, $0.key) },
            firstDue: record.putOff.dueAt)
        origins = record.origins.map(Origin.init)
        hasMoreOrigins = Int64(record.origins.count) >= GroupExplanationRecord.most
        straggler = record.stragglers.lazy.compactMap(Straggler.init).first
        workers.reaching = max(0, record.workers.reaching - record.workers.draining)
        workers.freeSlots = record.workers.freeSlots
        workers.own = own.workers(record.group.sink, leaving: record.workers.draining)
        fleet = record.fleet.map {
            Fleet(bytesPerSecondLimit: $0.bytesPerSecondLimit, bytesPerSecond: $0.bytesPerSecond)
        }
        at = record.at
    }
}

extension GroupFacts.Window {
    /// When a group may run.
    init(_ group: GroupRecord) {
        self =
            if !group.isWindowOpen {
                .closed(until: group.windowOpensAt)
            } else if let end = group.windowClosesAt {
                .open(until: end)
            } else {
                .always
            }
    }
}

extension GroupFacts.Count {
    /// A count that the store ended at one above its bound.
    fileprivate init(_ counted: Int64) {
        self.init(number: min(counted, GroupExplanationRecord.most), more: counted > GroupExplanationRecord.most)
    }
}

extension GroupFacts.Origin {
    /// An origin and the group's part of it.
    fileprivate init(_ record: GroupExplanationRecord.Origin) {
        self.init(
            key: record.origin.key, pausedUntil: record.origin.pausedUntil, isTried: record.origin.isTried,
            leases: record.origin.connections,
            allowed: record.origin.allowedConnections, limit: record.origin.limit,
            bytesPerSecond: record.origin.bytesPerSecond,
            bytesPerSecondLimit: record.origin.bytesPerSecondLimit, own: record.connections,
            ownBytesPerSecond: record.bytesPerSecond,
            ownBytesLeft: record.bytesLeft, ready: GroupFacts.Count(record.readyChunks),
            bytesLeft: record.bytesLeftInAll)
    }
}

extension GroupFacts.Straggler {
    /// A lease that fetches; `nil` for other leases.
    fileprivate init?(_ record: GroupExplanationRecord.Straggler) {
        guard record.kind == .fetch, let origin = record.origin else { return nil }
        self.init(
            key: record.key, origin: origin, worker: record.worker, bytesLeft: record.bytesLeft,
            bytesPerSecond: record.bytesPerSecond, grantedAt: record.grantedAt)
    }
}

extension GroupExplanationDocument.SlowestOrigin {
    /// An origin as it is shown.
    init(_ origin: GroupFacts.Origin) {
        self.init(
            key: origin.key, leases: origin.own, allowed: origin.allowed, bytesPerSecond: origin.ownBytesPerSecond,
            bytesLeft: origin.bytesLeft)
    }
}

extension OwnProcess {
    /// The state of the process's own workers for a sink, of which `leaving` are draining: these don't come back.
    func workers(_ sink: String, leaving: Int64) -> Workers {
        let known = workers(sink)
        return known == .coming && leaving > 0 ? .left : known
    }

    /// The silent workers of a group. While the database has no room, their reports can't be stored, and the workers are
    /// not at fault.
    func silent(_ group: GroupRecord) -> [TaskFacts.SilentWorker] {
        guard !group.silent.isEmpty else { return [] }
        let trouble = databaseTrouble()
        return group.silent.map {
            TaskFacts.SilentWorker(name: $0.name, since: $0.seenAt, endsAt: $0.endsAt, databaseTrouble: trouble)
        }
    }
}
