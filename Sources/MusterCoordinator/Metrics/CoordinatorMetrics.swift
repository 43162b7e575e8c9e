import CoreMetrics

/// What this process counts and times, through swift-metrics; `GET /metrics` shows it in the Prometheus text format.
final class CoordinatorMetrics: Sendable {
    /// The counters; `help` says what each one counts.
    enum Counter: String, CaseIterable, Sendable {
        case requests = "muster_http_requests_total"
        case failures = "muster_http_failures_total"
        case syncs = "muster_syncs_total"
        case bytesReceived = "muster_bytes_received_total"
        case leasesGranted = "muster_leases_granted_total"
        case leasesExpired = "muster_leases_expired_total"
        case leasesRepaired = "muster_leases_repaired_total"
        case leasesSlow = "muster_leases_slow_total"
        case leasesSilent = "muster_leases_silent_total"
        case leasesPreempted = "muster_leases_preempted_total"
        case shrinksAsked = "muster_shrinks_asked_total"
        case shrinksAgreed = "muster_shrinks_agreed_total"
        case reports = "muster_reports_total"
        case staleReports = "muster_reports_stale_total"
        case reportsRefused = "muster_reports_refused_total"
        case chunksDone = "muster_chunks_done_total"
        case tasksFinished = "muster_tasks_finished_total"
        case tasksReused = "muster_tasks_reused_total"
        case bytesReused = "muster_reused_bytes_total"
        case tasksOverdue = "muster_tasks_overdue_total"
        case urlsResolved = "muster_urls_resolved_total"
        case leasesFailed = "muster_leases_failed_total"
        case sessionsOpened = "muster_sessions_opened_total"
        case sessionsExpired = "muster_sessions_expired_total"
        case eventsSequenced = "muster_events_sequenced_total"
        case eventsDropped = "muster_events_dropped_total"
        case eventsDelivered = "muster_events_delivered_total"
        case deliveriesFailed = "muster_deliveries_failed_total"
        case deliveriesDead = "muster_deliveries_dead_total"
        case tasksAdded = "muster_tasks_added_total"

        /// One line of explanation.
        var help: String {
            switch self {
            case .requests: "HTTP requests answered."
            case .failures: "HTTP requests answered with 5xx."
            case .syncs: "Syncs of workers."
            case .bytesReceived: "Bytes of bodies that workers received."
            case .leasesGranted: "Leases granted."
            case .leasesExpired: "Leases taken back from expired sessions."
            case .leasesRepaired: "Leases given back because the answer with them was lost."
            // Range contract, row 32.
            case .leasesSlow: "Leases taken back because they were much slower than their peers."
            case .leasesSilent: "Leases taken back because they held up their group and their worker was silent."
            case .leasesPreempted:
                "Requests to holders to give a connection to something more urgent, or since a cap was made smaller."
            case .shrinksAsked: "Requests to holders to give the tail of a chunk away."
            case .shrinksAgreed: "Chunks whose tail was given to others."
            case .reports: "Reports of workers."
            case .staleReports: "Reports refused because the lease was lost."  // I1
            case .reportsRefused: "Reports refused because they can't be stored."  // I19
            case .chunksDone: "Chunks durable to their end."
            case .tasksFinished: "Files put in place."
            case .tasksReused: "Files made of one that the sink had, so that nothing was fetched."
            case .bytesReused: "Bytes of files that were made of one that the sink had."
            case .tasksOverdue: "Tasks whose deadline passed."  // range contract, row 33
            case .urlsResolved: "Fresh URLs that resolvers gave."  // range contract, row 21
            case .leasesFailed: "Leases that failed."
            case .sessionsOpened: "Worker sessions opened."
            case .sessionsExpired: "Worker sessions expired."
            case .eventsSequenced: "Events given their position in the log."
            case .eventsDropped: "Events dropped from the log because they were too old."
            case .eventsDelivered: "Deliveries of events that a receiver took."
            case .deliveriesFailed: "Tries to deliver an event that failed."
            case .deliveriesDead: "Deliveries of events that were given up."
            case .tasksAdded: "Tasks added."
            }
        }
    }

    /// The counters of each round, by its name.
    private enum RoundCounter: String, CaseIterable {
        case runs = "muster_rounds_total"
        case failures = "muster_round_failures_total"

        /// One line of explanation.
        var help: String {
            switch self {
            case .runs: "Runs of background rounds, those that failed included."
            case .failures: "Runs of background rounds that failed."
            }
        }
    }

    /// The durations, each a histogram; `help` says what each one measures.
    enum Duration: String, CaseIterable, Sendable {
        case requests = "muster_http_request_seconds"
        case syncs = "muster_sync_seconds"
        case claims = "muster_claim_seconds"
        case reports = "muster_report_seconds"
        case deliveries = "muster_delivery_seconds"

        /// One line of explanation.
        var help: String {
            switch self {
            case .requests: "Time until the answer to an HTTP request begins, waits for work and events included."
            case .syncs: "Time of a sync of a worker, waits for work included."
            case .claims: "Time of a claim of leases in the database."
            case .reports: "Time in which a batch of reports is written."
            case .deliveries: "Time of a post of an event to its receiver."
            }
        }
    }

    private let registry = PrometheusRegistry()
    private let counters: [Counter: CoreMetrics.Counter]
    private let rounds: [RoundCounter: [RoundName: CoreMetrics.Counter]]
    private let timers: [Duration: CoreMetrics.Timer]

    init() {
        let registry = registry
        counters = Dictionary(
            uniqueKeysWithValues: Counter.allCases.map { counter in
                registry.describe(counter.rawValue, counter.help)
                return (counter, CoreMetrics.Counter(label: counter.rawValue, factory: registry))
            })
        rounds = Dictionary(
            uniqueKeysWithValues: RoundCounter.allCases.map { counter in
                registry.describe(counter.rawValue, counter.help)
                let each = RoundName.allCases.map { round in
                    (
                        round,
                        CoreMetrics.Counter(
                            label: counter.rawValue, dimensions: [("round", round.rawValue)], factory: registry)
                    )
                }
                return (counter, Dictionary(uniqueKeysWithValues: each))
            })
        timers = Dictionary(
            uniqueKeysWithValues: Duration.allCases.map { duration in
                registry.describe(duration.rawValue, duration.help)
                return (duration, CoreMetrics.Timer(label: duration.rawValue, factory: registry))
            })
    }

    /// Counts `amount` more.
    func add(_ counter: Counter, _ amount: Int = 1) {
        guard amount != 0 else { return }
        counters[counter]?.increment(by: Int64(amount))
    }

    /// Counts a run of a round.
    func count(_ round: RoundName, isFailure: Bool = false) {
        rounds[.runs]?[round]?.increment()
        if isFailure { rounds[.failures]?[round]?.increment() }
    }

    /// Times some work, also when it fails.
    func time<Answer>(
        _ duration: Duration, isolation: isolated (any Actor)? = #isolation, _ work: () async throws -> Answer
    ) async rethrows -> Answer {
        let start = ContinuousClock.now
        defer {
            let taken = (ContinuousClock.now - start).components
            timers[duration]?.recordNanoseconds(taken.seconds * 1_000_000_000 + taken.attoseconds / 1_000_000_000)
        }
        return try await work()
    }

    /// The text of `GET /metrics`.
    func render() -> String { registry.render() }
}

/// The keys of log metadata: one list, so that a fact has one name. None of them ever holds a secret.
enum CoordinatorMetadata {
    static let error = "error"
    static let sessions = "sessions"
    static let leases = "leases"
    static let session = "session"
    static let step = "step"
    static let worker = "worker"
    static let group = "group"
    static let chunk = "chunk"
    static let port = "port"
    static let host = "host"
    static let request = "request"
    static let subscription = "subscription"
    static let event = "event"
    static let round = "round"
    static let runs = "runs"
}
