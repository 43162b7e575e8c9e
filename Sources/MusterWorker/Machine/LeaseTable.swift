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
    /// The lease is not ours any more; the job was told to stop. Exits: gone, as soon as the job says so.
    case aborting
    /// The job is over and its terminal report waits for its answer. Exits: gone, as soon as that came.
    case ended
}

/// A lease and what has to be known of it when its document is no longer needed.
struct HeldLease: Sendable {
    let kind: LeaseKind
    let sink: String
    /// Where its chunk ends; `nil` where only the stream can tell.
    var end: Int64?
    var phase: LeasePhase
}

/// Every lease of the process with the counts that decide about room, kept by the one place that changes phases.
struct LeaseTable: Sendable {
    /// How many leases stand in which phase.
    struct Counts: Sendable, Hashable {
        var queued = 0
        var running = 0
        var finishing = 0
        var releasing = 0
        var aborting = 0
        var ended = 0

        /// Those that take a slot: an aborting job may still be inside a write.
        var occupying: Int { running + releasing + aborting }
        /// Those whose work is not over.
        var unfinished: Int { queued + running + finishing + releasing + aborting }
    }

    private(set) var counts = Counts()
    private var leases: [LeaseName: HeldLease] = [:]
    private var queue: Deque<LeaseName> = []
    /// Chunks with a job that was told to stop: a new lease of the same chunk waits until it has.
    private var stopping: [ChunkID: Int] = [:]

    subscript(name: LeaseName) -> HeldLease? { leases[name] }

    /// All names in a fixed order, so that histories replay. They are also what a sync says is held: a lease that was taken away is
    /// among them until its job has stopped, since it may be inside a write until then, and what is left of the task must not
    /// be deleted before (I13).
    var names: [LeaseName] { leases.keys.sorted() }

    /// When the lease that waits longest began to wait.
    var oldestQueued: Int64? {
        guard let name = queue.first, case .queued(_, let since)? = leases[name]?.phase else { return nil }
        return since
    }

    mutating func enqueue(_ lease: LeaseDocument, now: Int64) {
        leases[lease.name] = HeldLease(
            kind: lease.kind,
            sink: lease.sink,
            end: lease.end,
            phase: .queued(lease, since: now)
        )
        counts.queued += 1
        queue.append(lease.name)
    }

    mutating func move(_ name: LeaseName, to phase: LeasePhase) {
        guard var lease = leases[name] else { return }
        count(lease.phase, name, by: -1)
        if case .queued = lease.phase { queue.removeAll { $0 == name } }
        lease.phase = phase
        leases[name] = lease
        count(phase, name, by: 1)
    }

    /// Brings the end of a chunk nearer.
    mutating func shorten(_ name: LeaseName, to end: Int64) {
        leases[name]?.end = end
        guard case .queued(var document, let since)? = leases[name]?.phase else { return }
        document.end = end
        leases[name]?.phase = .queued(document, since: since)
    }

    mutating func remove(_ name: LeaseName) {
        guard let lease = leases.removeValue(forKey: name) else { return }
        count(lease.phase, name, by: -1)
        if case .queued = lease.phase { queue.removeAll { $0 == name } }
    }

    /// Takes the first queued lease that may begin, and whose chunk nobody here still works on, and makes it running.
    mutating func startNext(where mayBegin: (LeaseDocument) -> Bool) -> LeaseDocument? {
        for name in queue where stopping[name.chunk] == nil {
            guard case .queued(let document, _)? = leases[name]?.phase, mayBegin(document) else { continue }
            move(name, to: .running)
            return document
        }
        return nil
    }

    private mutating func count(_ phase: LeasePhase, _ name: LeaseName, by step: Int) {
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
    /// Whether its job was told to stop, and has not said yet that it has.
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
