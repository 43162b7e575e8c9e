import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// A machine with a manual clock. It records every effect, and checks after every step that the machine does not ask to be woken for a time that has passed.
struct MachineHarness {
    var machine: WorkerMachine
    var now: Int64 = 1_000_000_000_000
    var effects: [MachineEffect] = []

    init(
        slots: Int = 4,
        sinks: [SinkStatus] = [SinkStatus(name: "default")],
        seed: UInt64 = 7
    ) {
        machine = WorkerMachine(
            MachineConfiguration(name: "w", version: "1", sinks: sinks, slots: slots),
            seed: seed
        )
    }

    @discardableResult
    mutating func feed(_ input: MachineInput) -> [MachineEffect] {
        let new = machine.step(input, now: now)
        effects += new
        if let deadline = machine.nextDeadline {
            #expect(deadline > now, "the machine left undone what was due")
        }
        return new
    }

    /// Lets time pass; the machine is woken at each of its deadlines.
    @discardableResult
    mutating func pass(_ span: Duration) -> [MachineEffect] {
        let end = now + span.wholeNanoseconds
        var new: [MachineEffect] = []
        while let deadline = machine.nextDeadline, deadline <= end {
            now = deadline
            new += feed(.tick)
        }
        now = end
        return new + feed(.tick)
    }

    /// Lets time pass while a coordinator answers every sync at once with an empty answer.
    @discardableResult
    mutating func passAnswering(_ span: Duration) -> [MachineEffect] {
        let begin = effects.count
        let end = now + span.wholeNanoseconds
        while let deadline = machine.nextDeadline, deadline <= end {
            answer(effects.syncs.last)
            now = max(now, min(deadline, end))
            feed(.tick)
        }
        answer(effects.syncs.last)
        now = end
        feed(.tick)
        answer(effects.syncs.last)
        return Array(effects[begin...])
    }

    /// Opens a session of 30 s and returns the first sync.
    @discardableResult
    mutating func open(_ id: Int64 = 1) -> SyncRequest? {
        feed(.tick)
        return feed(.sessionOpened(SessionDocument(id: SessionID(id), ttlMilliseconds: 30_000))).syncs.last
    }

    @discardableResult
    mutating func answer(
        _ sync: SyncRequest?,
        _ leases: [LeaseDocument] = [],
        lost: [LeaseName] = [],
        refused: [RefusedReport] = [],
        deferred: [LeaseName]? = nil,
        shrink: [Shrink] = [],
        drain: Bool = false,
        budgets: [BudgetShare]? = nil,
        addresses: AddressGuard? = nil,
        session: Int64 = 1
    ) -> [MachineEffect] {
        let answer = SyncResponse(
            lost: lost,
            refused: refused,
            deferred: deferred,
            shrink: shrink,
            leases: leases,
            drain: drain,
            ttlMilliseconds: 30_000,
            budgets: budgets,
            addresses: addresses
        )
        return feed(.syncAnswered(SessionID(session), sequence: sync?.sequence ?? -1, answer))
    }

    @discardableResult
    mutating func fail(
        _ sync: SyncRequest?,
        _ failure: CallFailure = .unreachable,
        session: Int64 = 1
    ) -> [MachineEffect] {
        feed(.syncFailed(SessionID(session), sequence: sync?.sequence ?? -1, failure))
    }

    @discardableResult
    mutating func end(_ lease: LeaseDocument, _ ending: JobEnding) -> [MachineEffect] {
        feed(.job(lease.name, .ended(ending)))
    }
}

extension [MachineEffect] {
    var syncs: [SyncRequest] {
        compactMap { if case .sync(_, let request) = $0 { request } else { nil } }
    }
    var started: [LeaseName] {
        compactMap { if case .start(let lease, _) = $0 { lease.name } else { nil } }
    }
    var released: [LeaseName] {
        compactMap { if case .release(let name) = $0 { name } else { nil } }
    }
    var aborted: [LeaseName] {
        compactMap { if case .abort(let name) = $0 { name } else { nil } }
    }
    var openings: Int { count { if case .openSession = $0 { true } else { false } } }
    var closings: Int { count { if case .closeSession = $0 { true } else { false } } }
}

func lease(
    _ chunk: Int64,
    epoch: Int64 = 1,
    kind: LeaseKind = .fetch,
    sink: String = "default",
    lane: Int64? = nil,
    origin: String? = nil
) -> LeaseDocument {
    var document = LeaseDocument(
        name: LeaseName(chunk: ChunkID(chunk), epoch: LeaseEpoch(epoch)), kind: kind, task: TaskID(chunk), sink: sink,
        path: "f\(chunk)")
    document.end = 8 << 20
    document.source = LeaseSource(ordinal: 0, url: "http://127.0.0.1/f\(chunk)", headers: [:])
    document.lane = lane
    document.origin = origin
    return document
}

func done(_ bytes: Int64 = 8 << 20) -> JobEnding {
    .done(DurablePrefix(offset: bytes, crc: 1), nil, nil)
}

let network = JobEnding.failed(Report.Failure(kind: .network, detail: "reset"), nil, nil)
let learned = Report.Learned(
    representation: Representation(size: 100, etag: "\"a\""),
    rung: .chunks,
    effectiveURL: nil,
    source: 0
)
