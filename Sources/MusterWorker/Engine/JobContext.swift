import Logging
import MusterAPI
import MusterCore
import MusterSystem
import Synchronization

/// What every job of a worker shares.
final class JobContext: Sendable {
    /// Whether writing is allowed.
    let gate: TrustGate
    /// Where transfers run.
    let loops: LoopSet
    /// Makes running chunks durable periodically.
    let checkpointer: Checkpointer
    /// Decides which addresses may be contacted.
    let sources: SourceGuard
    /// The byte budgets of the transfers.
    let budgets: BudgetBook
    /// Which origins are always asked in HTTP/1.1.
    let protocols = OriginProtocols()
    /// What the worker has learned about the origins so far.
    let conduct: OriginConduct
    /// Files that the origins have served.
    let witnesses: OriginWitnesses
    /// Which small bodies of an origin are taken for files without a further question.
    let beliefs: OriginBeliefs
    /// The worker's configuration.
    let configuration: WorkerConfiguration
    /// The log.
    let logger: Logger
    /// Sends news about a lease to the machine.
    let tell: @Sendable (LeaseName, JobNews) -> Void
    private let stations: [String: SinkStation]
    private let receivedBytes = Atomic<Int64>(0)
    private let revocations = Mutex<Set<RevokedSession>>([])

    /// The context of one run of a worker. `now` returns nanoseconds of a clock that never jumps; `conduct`, `beliefs`
    /// and `witnesses`, if given, may have their own clocks and times.
    init(
        configuration: WorkerConfiguration,
        gate: TrustGate,
        loops: LoopSet,
        stations: [SinkStation],
        logger: Logger,
        now: @escaping @Sendable () -> Int64 = MonotonicClock.now,
        conduct: OriginConduct? = nil,
        beliefs: OriginBeliefs? = nil,
        witnesses: OriginWitnesses? = nil,
        tell: @escaping @Sendable (LeaseName, JobNews) -> Void
    ) {
        self.configuration = configuration
        sources = SourceGuard(besides: configuration.addressAllowed)
        self.conduct = conduct ?? OriginConduct(now: now)
        self.beliefs = beliefs ?? OriginBeliefs(now: now)
        self.witnesses = witnesses ?? OriginWitnesses(now: now)
        budgets = BudgetBook(bytesPerSecond: configuration.bytesPerSecond)
        self.gate = gate
        self.loops = loops
        self.logger = logger
        self.tell = tell
        self.stations = Dictionary(stations.map { ($0.name, $0) }) { first, _ in first }
        checkpointer = Checkpointer(every: configuration.progressInterval * 2 / 3, tell: tell)
    }

    /// The secrets that options may refer to.
    var secrets: SecretStore { SecretStore(grants: configuration.secrets) }

    /// The sink of that name, if this worker reaches it.
    func station(_ name: String) -> SinkStation? { stations[name] }

    /// Notes sessions that are now revoked in sinks. The next sync reports them, so that leases need not name them any more.
    func revoked(_ sessions: some Sequence<RevokedSession>) {
        revocations.withLock { $0.formUnion(sessions) }
    }

    /// Takes revoked sessions that no sync has reported yet, at most `Limits.heldPerSync`.
    func takeRevoked() -> [RevokedSession] {
        revocations.withLock { revocations in
            let told = Array(revocations.prefix(Limits.heldPerSync))
            revocations.subtract(told)
            return told
        }
    }

    /// Ends long work on a file when its job has to end, and tells the engine that the work goes on.
    func watch(_ lease: LeaseName, _ control: LeaseControl) -> FinalizeWatch {
        let pulse = Pulse()
        return FinalizeWatch(
            mayContinue: { [gate] in gate.isOpen && control.wish == .work },
            verified: { [tell] _ in
                if pulse.isDue() { tell(lease, .progress(nil, nil)) }
            }
        )
    }

    /// Counts body bytes that came in.
    func received(_ count: Int) {
        receivedBytes.add(Int64(count), ordering: .relaxed)
    }

    /// Takes the count of body bytes since the last call.
    func takeReceived() -> Int64 {
        receivedBytes.exchange(0, ordering: .relaxed)
    }
}
