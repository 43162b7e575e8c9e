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
    /// Makes running chunks durable now and then.
    let checkpointer: Checkpointer
    /// Which addresses are asked.
    let sources: SourceGuard
    /// At which rate.
    let budgets: BudgetBook
    /// Which origins are asked in HTTP/1.1, come what may.
    let protocols = OriginProtocols()
    /// What the origins have done so far.
    let conduct: OriginConduct
    /// Files that they have served.
    let witnesses: OriginWitnesses
    /// How answers look that bring files from there.
    let beliefs: OriginBeliefs
    /// The worker's configuration.
    let configuration: WorkerConfiguration
    /// The log.
    let logger: Logger
    /// Tells the machine something about a lease.
    let tell: @Sendable (LeaseName, JobNews) -> Void
    private let stations: [String: SinkStation]
    private let receivedBytes = Atomic<Int64>(0)
    private let revocations = Mutex<Set<RevokedSession>>([])

    /// The context of one run of a worker. `now` tells nanoseconds of a clock that never jumps; `conduct`, `beliefs` and `witnesses` that are given may have
    /// clocks and times of their own.
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

    /// What options may refer to.
    var secrets: SecretStore { SecretStore(grants: configuration.secrets) }

    /// The sink of that name, if this worker reaches it.
    func station(_ name: String) -> SinkStation? { stations[name] }

    /// Notes sessions that are revoked in sinks by now, for a sync to tell: no lease has to name them any more.
    func revoked(_ sessions: some Sequence<RevokedSession>) {
        revocations.withLock { $0.formUnion(sessions) }
    }

    /// Takes what no sync has told of yet.
    func takeRevoked() -> [RevokedSession] {
        revocations.withLock { revocations in
            let told = Array(revocations.prefix(Limits.heldPerSync))
            revocations.subtract(told)
            return told
        }
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
