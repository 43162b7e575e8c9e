import DequeModule
import MusterAPI
import MusterCore

/// Where a lease stands in this process.
enum LeasePhase: Sendable {
    /// Granted, waiting for a slot. Exits: `running` when one is free, `ended` when none is in time or the sink is parked.
    case queued(LeaseDocument, since: Int64)
    /// A job fetches, verifies or purges, and takes a slot. Exits: `finishing`, `releasing`, `aborting`, `ended`.
    case running
    /// The bytes are here; storage is busy and the slot is free. Exits: `releasing`, `aborting`, `ended`.
    case finishing
    /// The job was asked to give the lease back. Exits: `aborting`, `ended`.
    case releasing
    /// The lease was taken away; the job was told to stop. Exits: gone, as soon as the job says that it has stopped.
    case aborting
    /// The job is over and its terminal report waits for its answer. Exits: gone, as soon as the answer came.
    case ended
}

/// A lease, with what has to be known of it when its document is no longer needed.
struct HeldLease: Sendable {
    let kind: LeaseKind
    let sink: String
    /// Its lane: the connection that it uses after the leases before it; `nil` for work that uses none.
    let lane: Int64?
    /// The origin that it leads to.
    let origin: String?
    /// Where its chunk ends; `nil` where only the stream can tell.
    var end: Int64?
    var phase: LeasePhase
    /// When its job was started; `nil` if its duration says nothing about other leases.
    var startedAt: Int64?
    /// When its job was started.
    var takesSlotSince: Int64?
    /// Whether its job was started beyond the worker's slots.
    var isBeyondSlots = false
    /// When its origin last brought something, as far as the job has said; `nil` before its answer.
    var broughtAt: Int64?
    /// The durable offset at that moment.
    var brought: Int64 = 0
    /// Why it can't be given back although its job has ended; `nil` for all others.
    var unsettled: Unsettled?
    /// Whether its session is over.
    var isSessionOver = false
}

/// Every lease of the process, with the counts that decide about room. Only this table changes phases.
struct LeaseTable: Sendable {
    /// How many leases stand in which phase.
    struct Counts: Sendable, Hashable {
        var queued = 0
        var running = 0
        var finishing = 0
        var releasing = 0
        var aborting = 0
        var ended = 0

        /// Those of `occupying` that were started beyond the slots.
        var beyondSlots = 0

        /// Leases whose jobs run: an aborting job may still be inside a write.
        var occupying: Int { running + releasing + aborting }
        /// Leases that take a slot.
        var inSlots: Int { occupying - beyondSlots }
        /// Leases whose work is not over.
        var unfinished: Int { queued + running + finishing + releasing + aborting }
    }

    /// The leases of a lane: one of them transfers at a time.
    private struct Lane: Sendable {
        /// Its number among the present lanes. It leads the transfers of the lane to the same loop, where they find their connection.
        let seat: Int
        var queued = 0
        var occupying = 0
    }

    private(set) var counts = Counts()
    /// How many leases can't be given back although their jobs have ended.
    private(set) var unsettled = 0
    private var leases: [LeaseName: HeldLease] = [:]
    private var queue: Deque<LeaseName> = []
    /// The lanes that have leases to transfer.
    private var lanes: [Int64: Lane] = [:]
    /// Chunks with a job that was told to stop: a new lease of the same chunk waits until it has.
    private var stopping: [ChunkID: Int] = [:]

    subscript(name: LeaseName) -> HeldLease? { leases[name] }

    /// All names in a fixed order, so that histories replay. A sync states them as held. A lease that was taken away is among them until its job has stopped:
    /// the job may be inside a write until then, and what is left of the task must not be deleted before (I13).
    var names: [LeaseName] { leases.keys.sorted() }

    /// When the lease that waits longest began to wait.
    var oldestQueued: Int64? {
        guard let name = queue.first, case .queued(_, let since)? = leases[name]?.phase else { return nil }
        return since
    }

    /// How many slots the queue could use at once: one for each lane in which nothing runs, and for each lease without one.
    var startable: Int {
        let waiting = lanes.values.reduce(0) { $0 + $1.queued }
        return lanes.values.count { $0.occupying == 0 && $0.queued > 0 } + counts.queued - waiting
    }

    /// How many slots have been taken since a moment by the same job.
    func slotsTaken(since moment: Int64) -> Int {
        leases.values.count { lease in
            switch lease.phase {
            case .running, .releasing, .aborting:
                !lease.isBeyondSlots && lease.takesSlotSince.map { $0 <= moment } ?? false
            case .queued, .finishing, .ended: false
            }
        }
    }

    /// How many transfers began before `start` and have brought no answer, or have brought hardly anything since `stop`.
    func silentTransfers(since start: Int64, or stop: Int64) -> Int {
        leases.values.count { lease in
            guard case .running = lease.phase, lease.kind == .fetch else { return false }
            return lease.broughtAt.map { $0 <= stop } ?? lease.takesSlotSince.map { $0 <= start } ?? false
        }
    }

    /// Notes that an origin has answered, or that more has come. Less than 8 KiB at a time is hardly anything.
    mutating func noteAnswer(to name: LeaseName, offset: Int64?, now: Int64) {
        guard let lease = leases[name] else { return }
        let isMore = offset.map { $0 >= lease.brought + 8_192 } ?? false
        guard lease.broughtAt == nil || isMore else { return }
        leases[name]?.broughtAt = now
        if let offset { leases[name]?.brought = offset }
    }

    /// Notes that a lease can't be given back although its job has ended.
    mutating func setUnsettled(_ name: LeaseName, _ unsettled: Unsettled) {
        guard leases[name] != nil else { return }
        if leases[name]?.unsettled == nil { self.unsettled += 1 }
        leases[name]?.unsettled = unsettled
    }

    /// Notes that the session of a lease is over: its job ends, and nothing is waited for after that.
    mutating func endSession(of name: LeaseName) {
        guard let lease = leases[name] else { return }
        leases[name]?.isSessionOver = true
        if lease.unsettled != nil { remove(name) }
    }

    /// How many lanes have something to transfer.
    var laneCount: Int { lanes.count }

    /// The number of the lane of a lease that is queued or running; `nil` where it has none.
    func seat(of name: LeaseName) -> Int? { leases[name]?.lane.flatMap { lanes[$0]?.seat } }

    /// The least number that no lane has.
    private var freeSeat: Int {
        let taken = Set(lanes.values.map(\.seat))
        return (0...taken.count).first { !taken.contains($0) } ?? 0
    }

    /// The queued leases that lead to an origin, in order.
    func queued(for origin: String) -> [LeaseName] { queue.filter { leases[$0]?.origin == origin } }

    mutating func enqueue(_ lease: LeaseDocument, now: Int64) {
        leases[lease.name] = HeldLease(
            kind: lease.kind,
            sink: lease.sink,
            lane: lease.lane,
            origin: lease.origin,
            end: lease.asksForAll == true ? nil : lease.end,
            phase: .queued(lease, since: now)
        )
        // In the order in which they were granted: the more urgent ones of a claim come first, however their answers arrive.
        let place = queue.lastIndex { $0.epoch <= lease.name.epoch }
        queue.insert(lease.name, at: place.map { $0 + 1 } ?? 0)
        count(.queued(lease, since: now), lease.name, by: 1)
    }

    mutating func move(_ name: LeaseName, to phase: LeasePhase) {
        guard let before = leases[name]?.phase else { return }
        // Counted up before down, so that its lane is not removed in between and keeps its seat.
        count(phase, name, by: 1)
        count(before, name, by: -1)
        if case .queued = before { queue.removeAll { $0 == name } }
        leases[name]?.phase = phase
        if case .ended = phase, leases[name]?.unsettled != nil {
            leases[name]?.unsettled = nil
            unsettled -= 1
        }
    }

    /// Moves the end of a chunk.
    mutating func setEnd(of name: LeaseName, to end: Int64) {
        leases[name]?.end = end
        // Its duration says nothing about other leases any more.
        leases[name]?.startedAt = nil
        guard case .queued(var document, let since)? = leases[name]?.phase else { return }
        document.end = end
        leases[name]?.phase = .queued(document, since: since)
    }

    mutating func remove(_ name: LeaseName) {
        guard let lease = leases[name] else { return }
        count(lease.phase, name, by: -1)
        if lease.unsettled != nil { unsettled -= 1 }
        leases[name] = nil
        if case .queued = lease.phase { queue.removeAll { $0 == name } }
    }

    /// Takes the first queued lease that may begin, in whose lane nothing runs, and on whose chunk no stopping job still works. Makes it running.
    ///
    /// - Parameter isBeyondSlots: whether it takes no slot.
    mutating func startNext(
        _ now: Int64, isBeyondSlots: Bool, where mayBegin: (LeaseDocument) -> Bool
    ) -> LeaseDocument? {
        let next = queue.firstIndex { name in
            guard stopping[name.chunk] == nil, let lease = leases[name], case .queued(let document, _) = lease.phase
            else {
                return false
            }
            return lease.lane.map { lanes[$0]?.occupying ?? 0 == 0 } ?? true && mayBegin(document)
        }
        guard let next, case .queued(let document, _)? = leases[queue[next]]?.phase else { return nil }
        leases[document.name]?.isBeyondSlots = isBeyondSlots
        move(document.name, to: .running)
        leases[document.name]?.startedAt = now
        leases[document.name]?.takesSlotSince = now
        return document
    }

    private mutating func count(_ phase: LeasePhase, _ name: LeaseName, by step: Int) {
        if let lane = leases[name]?.lane {
            var content = lanes[lane] ?? Lane(seat: freeSeat)
            switch phase {
            case .queued: content.queued += step
            case .running, .releasing, .aborting: content.occupying += step
            case .finishing, .ended: break
            }
            lanes[lane] = content.queued == 0 && content.occupying == 0 ? nil : content
        }
        switch phase {
        case .running, .releasing, .aborting: if leases[name]?.isBeyondSlots == true { counts.beyondSlots += step }
        case .queued, .finishing, .ended: break
        }
        switch phase {
        case .queued: counts.queued += step
        case .running: counts.running += step
        case .finishing: counts.finishing += step
        case .releasing: counts.releasing += step
        case .aborting:
            counts.aborting += step
            let left = (stopping[name.chunk] ?? 0) + step
            stopping[name.chunk] = left == 0 ? nil : left
        case .ended: counts.ended += step
        }
    }
}

extension HeldLease {
    /// Whether its job was told to stop, and has not said yet that it has stopped.
    var isStopping: Bool {
        if case .aborting = phase { true } else { false }
    }
}

extension Sequence<LeaseName> {
    /// By chunk, then by epoch.
    func sorted() -> [LeaseName] {
        sorted { $0.chunk == $1.chunk ? $0.epoch < $1.epoch : $0.chunk < $1.chunk }
    }
}
