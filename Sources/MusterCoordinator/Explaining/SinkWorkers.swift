import MusterCore
import MusterStore

/// The live sessions that reach a sink and are not draining.
struct SinkWorkers: Sendable, Hashable {
    /// A worker that has been silent for longer than it should be.
    struct Silent: Sendable, Hashable {
        /// Its name.
        var name: String
        /// When it was last seen.
        var since: Timestamp
        /// When its session counts as gone and its leases end, if it stays silent.
        var endsAt: Timestamp?
        /// Why its reports can't be stored, if that is so.
        var databaseTrouble: String?
    }

    /// How many there are.
    var reaching: Int64
    /// Whether the sink is in trouble at all of these sessions that are not silent.
    var isSinkParked = false
    /// The trouble, as one of these sessions reported it.
    var parkedDetail: String?
    /// Transfers that the other sessions could take.
    var freeSlots: Int64
    /// The silent workers that hold leases of the group, or all workers if `areAllSilent`; the longest silence first.
    var silent: [Silent] = []
    /// Whether there are sessions, and all of them are silent.
    var areAllSilent = false
    /// The state of the workers for the sink that belong to the coordinator's own process.
    var own = OwnProcess.Workers.none
}

extension SinkWorkers {
    /// The workers for the sink of a group.
    ///
    /// - Parameters:
    ///   - counts: the sessions that reach the sink; `nil` if only the group's row was read, which counts draining ones too.
    ///   - own: what the coordinator's own process knows.
    init(_ group: GroupRecord, _ counts: WorkerCounts?, own: OwnProcess) {
        self.init(
            reaching: counts.map { max(0, $0.reaching - $0.draining) } ?? group.workersReaching,
            isSinkParked: group.isSinkParked, parkedDetail: group.parkedDetail, freeSlots: counts?.freeSlots ?? 0,
            silent: own.silent(group), areAllSilent: group.areAllSilent,
            own: own.workers(group.sink, leaving: counts?.draining ?? 0))
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
    func silent(_ group: GroupRecord) -> [SinkWorkers.Silent] {
        guard !group.silent.isEmpty else { return [] }
        let trouble = databaseTrouble()
        return group.silent.map {
            SinkWorkers.Silent(name: $0.name, since: $0.seenAt, endsAt: $0.endsAt, databaseTrouble: trouble)
        }
    }
}
