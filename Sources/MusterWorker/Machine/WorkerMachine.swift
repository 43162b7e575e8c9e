import MusterAPI
import MusterCore

/// Decides everything about a worker's session and leases, without doing any of it (sans-IO).
///
/// `step` takes what happened and the monotonic time, in nanoseconds, and returns what is to be done. `nextDeadline` says
/// when `step` wants a `tick` if nothing happens before. The same inputs at the same times with the same seed give the
/// same effects. The rules that it keeps are those of `docs/protocol.md`.
struct WorkerMachine: Sendable {
    let configuration: MachineConfiguration
    var random: JitterGenerator
    var session: SessionState
    /// The last session that was opened.
    var previous: SessionID?
    var course: Course = .working
    var leases = LeaseTable()
    var ledger = ReportLedger()
    var sinks: [SinkState]
    var check = CheckWork.none
    /// Which addresses may be fetched from, by the last answer; `nil` allows all.
    var addresses: AddressGuard?
    /// Received bytes that no sync has reported.
    var untoldBytes: Int64 = 0
    /// The worker's shares of byte budgets by the last answer, in bytes per second.
    var shares: [String: Int64] = [:]
    /// The use of budgets that no sync has reported, by budget name.
    var untoldTraffic: [String: Traffic] = [:]
    /// The recent mean duration of transfers, in nanoseconds; `nil` before the first one ended.
    var meanTime: Int64?
    /// The recent mean time until a prompt sync was answered, in nanoseconds; `nil` before the first answer.
    var roundTrip: Int64?
    /// Whether it was logged that no coordinator can be reached, in the present outage.
    var hasToldOutage = false
    /// The reasons for which coordinators have refused this worker since one served it last, with when each was last logged.
    var toldRefusals: [String: Int64] = [:]
    /// The effects of the step so far.
    var effects: [MachineEffect] = []

    /// A machine that opens a session at its first step.
    init(_ configuration: MachineConfiguration, seed: UInt64) {
        self.configuration = configuration
        random = JitterGenerator(seed: seed)
        session = .absent(retryAt: .min, failures: 0)
        sinks = configuration.sinks.map { SinkState($0) }
    }

    /// Takes one input in and returns what is to be done because of it and of the time.
    mutating func step(_ input: MachineInput, now: Int64) -> [MachineEffect] {
        effects = []
        if case .over = course { return [] }
        switch input {
        case .tick: break
        case .sessionOpened(let document, let sinks): takeSession(document, sinks, now)
        case .sessionRefused(let failure): missSession(failure, now)
        case .syncAnswered(let id, let sequence, let answer): takeAnswer(id, sequence, answer, now)
        case .syncFailed(let id, let sequence, let failure): missAnswer(id, sequence, failure, now)
        case .sessionClosed: if case .closing = session { finish() }
        case .job(let name, let news): takeNews(name, news, now)
        // Counts lead to nothing by themselves: the next sync that is due reports all of them.
        case .received(let bytes):
            untoldBytes += bytes
            return []
        case .traffic(let used):
            count(used)
            return []
        case .sinkProbed(let name, let result): takeProbe(name, result, now)
        case .sinkHangs(let name, let since): takeHang(name, since: since, now)
        case .checked(let report): takeLook(report)
        case .checkFailed(let page): missLook(page, now)
        case .drain: beginDrain(now)
        }
        advance(now)
        defer { effects = [] }
        return effects
    }

    /// What follows from the time alone, in the order of urgency: stop writing first, ask for work last.
    private mutating func advance(_ now: Int64) {
        checkTrust(now)
        expireQueue(now)
        advanceDrain(now)
        if case .over = course { return }
        probeSinks(now)
        startQueued(now)
        openSession(now)
        planSyncs(now)
    }

    /// The next moment at which something is due; `nil` when only an input can change anything.
    var nextDeadline: Int64? {
        [trustDeadline, queueDeadline, drainDeadline, probeDeadline, openDeadline, syncDeadline].compactMap { $0 }.min()
    }

    /// A random number within `0..<1`.
    mutating func jitter() -> Double {
        Double.random(in: 0..<1, using: &random)
    }

    /// Ends the machine: asks for `stop`, once.
    mutating func finish() {
        course = .over
        session = .over
        effects.append(.stop)
    }
}
