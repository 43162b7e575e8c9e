import Logging
import MusterCore
import MusterStore

/// The operations of a coordinator's rounds. Any number of coordinators may run them at once: each skips the rows that
/// another one has locked.
struct Sweeps: Sendable {
    let store: Store
    let dispatcher: ClaimDispatcher
    let sequencer: EventSequencer
    /// Wakes the syncs that wait for work in this coordinator.
    let claims: Signal
    let grace: SessionGrace
    let configuration: CoordinatorConfiguration
    let metrics: CoordinatorMetrics
    let logger: Logger
    /// Groups whose leases of expired sessions can't be taken back.
    private let stuck = ToldGroups()
    /// Groups whose stalled leases can't be taken back.
    private let stalled = ToldGroups()
    /// Groups whose hours can't be read.
    private let flawed = ToldGroups()
    /// Groups whose wishes can't be carried out.
    private let wished = ToldGroups()
    /// Groups whose deadline has passed, but that can't be ended.
    private let expired = ToldGroups()
    /// Groups that wait for no other group any more, but can't be started.
    private let released = ToldGroups()
    /// Groups with overdue tasks that can't be failed.
    private let overdue = ToldGroups()
    /// Names that several live workers have.
    private let shared = ToldNames()

    init(
        store: Store, dispatcher: ClaimDispatcher, sequencer: EventSequencer, claims: Signal, grace: SessionGrace,
        configuration: CoordinatorConfiguration, metrics: CoordinatorMetrics, logger: Logger
    ) {
        self.store = store
        self.dispatcher = dispatcher
        self.sequencer = sequencer
        self.claims = claims
        self.grace = grace
        self.configuration = configuration
        self.metrics = metrics
        self.logger = logger
    }

    /// How often lost or waiting work is looked for. Part of the bound on recovery (I14).
    static let interval = Duration.milliseconds(250)
    /// How many events one transaction drops. The log can't be extended while it runs.
    private static let droppedAtOnce: Int32 = 2_000

    private static let stuckLeases = "its leases can't be taken back: its data are in the way"

    /// The table of rounds.
    var rounds: [Round] {
        [
            Round(.polls, every: Self.interval) { await dispatcher.expire() },
            Round(.sessions, every: Self.interval, isAtStart: true) { try await endSessions() },
            Round(.backoffs, every: Self.interval) { _ = try await store.promoteDueChunks() },
            Round(.wishes, every: Self.interval) { _ = try await store.sweepWishes(onStuck: tells(wished)) },
            Round(.groupDeadlines, every: Self.interval) {
                metrics.add(.tasksOverdue, Int(try await store.expireGroups(onStuck: tells(expired)).failedTasks))
            },
            Round(.chains, every: Self.interval) { _ = try await store.releaseGroups(onStuck: tells(released)) },
            Round(.recalls, every: Self.interval) { _ = try await store.recallLeases() },
            Round(.purges, every: Self.interval) { _ = try await store.releasePurges() },
            Round(.repeats, every: Self.interval) { _ = try await store.releaseRepeats() },
            Round(.taskDeadlines, every: .seconds(1)) {
                metrics.add(.tasksOverdue, Int(try await store.failOverdue(onStuck: tells(overdue))))
            },
            Round(.originRates, every: .seconds(1)) {
                try await store.foldOriginRates()
                try await store.leaveRestingOrigins()
            },
            // Other coordinators poll as well: they need no hint.
            Round(.clock, every: .seconds(1)) {
                guard let step = try await store.followClock() else { return }
                logger.warning(
                    "the clock of the database has stepped back", metadata: [CoordinatorMetadata.step: "\(step)"])
            },
            Round(.work, every: .seconds(1)) { claims.raiseNews() },
            Round(.preemption, every: .seconds(1)) {
                metrics.add(.leasesPreempted, try await store.preempt().count)
            },
            Round(.shrinking, every: .seconds(1)) { try await dispatcher.findAsked() },
            Round(.events, every: .seconds(1), isAtStart: true) { try await sequencer.sequence() },
            Round(.slow, every: .seconds(5)) {
                metrics.add(.leasesSlow, Int(try await store.sweepSlow()))
                _ = try await store.trySlowOrigins()
            },
            Round(.stalled, every: .seconds(10)) {
                stalled.tell(
                    try await store.sweepStalled(stall: configuration.stallLimit).stuck.map { ($0, Self.stuckLeases) },
                    logger)
            },
            Round(.hours, every: .seconds(10)) {
                flawed.tell(
                    try await store.flawedHours().map {
                        ($0.group, "it does not run, since its hours can't be read: \($0.flaw)")
                    },
                    logger)
            },
            Round(.names, every: .seconds(10)) { shared.tell(try await store.sharedNames(), logger) },
            Round(.checks, every: .seconds(1)) { try await store.advanceCheck() },
            Round(.uploads, every: .seconds(10), isAtStart: true) {
                try await store.sweepStagedTasks(olderThan: .seconds(3_600))
            },
            // Runs more often where events are kept for only minutes.
            Round(.retention, everyOrSooner: min(.seconds(60), configuration.eventRetention / 10), isAtStart: true) {
                try await store.dropRemovalOutcomes(olderThan: configuration.eventRetention)
                let forgotten = try await store.dropRequests(olderThan: Limits.requestMemory, limit: Self.droppedAtOnce)
                let dropped = try await store.dropOldEvents(
                    olderThan: configuration.eventRetention, limit: Self.droppedAtOnce)
                metrics.add(.eventsDropped, Int(dropped))
                return max(dropped, forgotten) == Int64(Self.droppedAtOnce) ? .unfinished : .finished
            },
        ]
    }

    /// Logs the groups for which a round over groups can do nothing.
    private func tells(_ told: ToldGroups) -> Store.StuckGroups {
        { names in told.tell(names.map { ($0, "what is due can't be done: its data are in the way") }, logger) }
    }

    /// Ends expired sessions. Sessions whose time ran out in an outage get their grace first.
    private func endSessions() async throws {
        try await grace.settle { isStart in
            if isStart, configuration.ownsFleet {
                try await store.expireAllSessions()
            } else {
                try await store.graceExpiredSessions(timeToLive: configuration.sessionTimeToLive)
            }
        }
        let swept = try await store.sweepSessions()
        stuck.tell(swept.stuck.map { ($0, Self.stuckLeases) }, logger)
        guard swept.sessions > 0 || swept.leases > 0 else { return }
        metrics.add(.sessionsExpired, Int(swept.sessions))
        metrics.add(.leasesExpired, Int(swept.leases))
        logger.info(
            "sessions expired",
            metadata: [
                CoordinatorMetadata.sessions: "\(swept.sessions)", CoordinatorMetadata.leases: "\(swept.leases)",
            ])
    }
}
