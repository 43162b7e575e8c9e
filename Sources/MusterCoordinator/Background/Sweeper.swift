import Logging
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle

/// The regular rounds of a coordinator: expired sessions, stalled and slow leases, backoffs that are over, tasks and groups whose
/// deadline has passed, windows that have closed, verbs whose request died, groups that waited for others, leftovers that nobody writes any more, tasks that waited for the file of another, speeds of
/// origins, leftovers of uploads. Any number of coordinators may go round at once: what one has locked the others skip.
struct Sweeper: Service {
    let store: Store
    let dispatcher: ClaimDispatcher
    let sequencer: EventSequencer
    let configuration: CoordinatorConfiguration
    let metrics: CoordinatorMetrics
    let logger: Logger

    /// How long one round waits for the next. Part of the bound on recovery (I14).
    static let interval = Duration.milliseconds(250)

    /// Goes round until the coordinator stops.
    func run() async {
        await cancelWhenGracefulShutdown {
            // Nobody was sweeping before this coordinator started, or while the database was away: sessions whose time ran
            // out meanwhile get another one, since their workers could not renew them.
            var needsGrace = true
            var isFirst = true
            var round = 0
            while !Task.isCancelled {
                do {
                    if needsGrace {
                        try await grace(isFirst: isFirst)
                        needsGrace = false
                        isFirst = false
                    }
                    try await sweep(round)
                } catch let error as PostgresError {
                    if error.isUnavailable { needsGrace = true }
                    logger.warning("sweep failed", metadata: [CoordinatorMetadata.error: "\(error)"])
                } catch is CancellationError {
                    return
                } catch {
                    logger.error("sweep failed", metadata: [CoordinatorMetadata.error: "\(error)"])
                }
                round += 1
                try? await Task.sleep(for: Self.interval)
            }
        }
    }

    private func grace(isFirst: Bool) async throws {
        if isFirst, configuration.ownsFleet {
            try await store.expireAllSessions()
        } else {
            try await store.graceExpiredSessions(timeToLive: configuration.sessionTimeToLive)
        }
    }

    private func sweep(_ round: Int) async throws {
        let swept = try await store.sweepSessions()
        if swept.sessions > 0 || swept.leases > 0 {
            metrics.add(.sessionsExpired, Int(swept.sessions))
            metrics.add(.leasesExpired, Int(swept.leases))
            logger.info(
                "sessions expired",
                metadata: [
                    CoordinatorMetadata.sessions: "\(swept.sessions)", CoordinatorMetadata.leases: "\(swept.leases)",
                ])
        }
        var returned = swept.leases + (try await store.promoteDueChunks())
        returned += try await store.releasePurges()
        returned += try await store.releaseRepeats()
        let moved = try await store.sweepWishes()
        let groups = try await store.sweepGroups()
        returned += groups.released + groups.recalled
        metrics.add(.tasksOverdue, Int(groups.failedTasks))
        // Leftovers of what was cancelled or removed are work for somebody.
        returned += moved
        // Groups that ended by that, or begin and are empty, have written events.
        if moved > 0 || groups.released > 0 || groups.expired > 0 { sequencer.news() }
        if round.isMultiple(of: 4) {
            try await store.foldOriginRates()
            let overdue = try await store.failOverdue()
            metrics.add(.tasksOverdue, Int(overdue))
            // Their failure is an event, and may have closed groups.
            if overdue > 0 { sequencer.news() }
        }
        if round.isMultiple(of: 20) {
            let slow = try await store.sweepSlow()
            metrics.add(.leasesSlow, Int(slow))
            returned += slow
        }
        if round.isMultiple(of: 40) {
            returned += try await store.sweepStalled(stall: configuration.stallLimit)
            try await store.sweepStagedTasks(olderThan: .seconds(3_600))
        }
        if returned > 0 { await dispatcher.news() }
        // A poll of the database once a second or so backs up the hints, which may be lost (fault F14).
        await dispatcher.tick(polls: round.isMultiple(of: 4))
    }
}
