import Logging
import MusterCore
import MusterPostgres
import MusterStore
import MusterSystem
import ServiceLifecycle

/// Grants work to syncs that have room. One claim serves all syncs that came in while the last claim ran, so that under
/// load the number of transactions stays small while the number of leases grows.
actor ClaimDispatcher: Service {
    /// What a sync gets: leases, or the reason why there can't be any.
    typealias Answer = Result<[GrantedLease], any Error>

    private let store: any LeaseStore
    private let metrics: CoordinatorMetrics
    private let logger: Logger
    private let clock: MonotonicClock
    private let asked: AskedSessions
    private let signal: Signal
    /// When idle sessions were last used to help with stragglers.
    private var helpedAt: Int64?
    private var room = WaitingRoom<CheckedContinuation<Answer, Never>>()
    private var isClosed = false

    /// - Parameter signal: raised when there may be new work.
    init(
        store: any LeaseStore, signal: Signal, metrics: CoordinatorMetrics, logger: Logger, clock: MonotonicClock,
        asked: AskedSessions
    ) {
        self.store = store
        self.signal = signal
        self.asked = asked
        self.metrics = metrics
        self.logger = logger
        self.clock = clock
    }

    /// Asks for work and waits for it up to `wait`. An empty answer means that there was none, that a later sync of the session
    /// superseded this one, or that the coordinator is stopping.
    func claim(
        session: SessionID, sequence: Int64, room: Int32, ahead: Int32, spare: Bool, wait: Duration
    ) async throws -> [GrantedLease] {
        guard !isClosed else { return [] }
        let deadline = clock.now() + wait.milliseconds * 1_000_000
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let guest = WaitingRoom<CheckedContinuation<Answer, Never>>.Guest(
                    session: session, sequence: sequence, room: room, ahead: ahead, spare: spare, deadline: deadline,
                    ticket: continuation)
                self.room.enter(guest)?.ticket.resume(returning: .success([]))
                signal.raise()
            }
        } onCancel: {
            // The connection is gone; leases that are granted to this sync now are given back by the session's next sync.
            signal.raise(leaving: .init(session: session, sequence: sequence))
        }
        return try answer.get()
    }

    /// Runs claims until the coordinator stops.
    func run() async {
        await withGracefulShutdownHandler {
            for await notes in signal.stream {
                for gone in notes.departures {
                    room.leave(gone.session, sequence: gone.sequence)?.ticket.resume(returning: .success([]))
                }
                if notes.hasNews { room.news() }
                await claimForAll()
            }
        } onGracefulShutdown: { [signal] in
            signal.finish()
        }
        isClosed = true
        for guest in room.close() { guest.ticket.resume(returning: .success([])) }
    }

    /// Answers the syncs that have waited long enough. Called a few times a second.
    func expire() {
        for guest in room.expire(now: clock.now()) { guest.ticket.resume(returning: .success([])) }
    }

    /// Finds sessions that any coordinator has asked to shrink chunks, and answers their waiting syncs so that they are
    /// told soon.
    func findAsked() async throws {
        let untold = asked.replace(with: try await store.shrinkingSessions())
        for guest in room.dismiss(untold) { guest.ticket.resume(returning: .success([])) }
    }

    private func claimForAll() async {
        while true {
            let guests = room.beginClaim()
            guard !guests.isEmpty else { return }
            let answers: [SessionID: [GrantedLease]]
            var told: Set<SessionID> = []
            do {
                let requests = guests.map {
                    ClaimRequest(
                        session: $0.session, sequence: $0.sequence, room: $0.room, ahead: $0.ahead, spare: $0.spare)
                }
                let leases = try await metrics.time(.claims) { try await store.claim(requests) }
                metrics.add(.leasesGranted, leases.count)
                let busy = Set(leases.map(\.session))
                let help = await helpStragglers(requests.filter { !busy.contains($0.session) })
                told = Set(help.asked)
                answers = Dictionary(grouping: leases, by: \.session)
            } catch {
                // Every sync of the claim gets the error, so that workers try another coordinator or come back later.
                logger.warning("claim failed", metadata: [CoordinatorMetadata.error: "\(error)"])
                for guest in room.endClaim(granted: Set(guests.map(\.session)), now: clock.now()) {
                    guest.ticket.resume(returning: .failure(error))
                }
                return
            }
            for guest in room.endClaim(granted: told.union(answers.keys), now: clock.now()) {
                guest.ticket.resume(returning: .success(answers[guest.session] ?? []))
            }
            for guest in room.dismiss(told) { guest.ticket.resume(returning: .success([])) }
        }
    }

    /// Lets idle sessions help stragglers, once a second: speeds are known no better than that. The limit is 0.9 s, since a
    /// worker that reports each second comes a little earlier now and then, and would be skipped every second time.
    private func helpStragglers(_ idle: [ClaimRequest]) async -> StragglerHelp {
        let now = clock.now()
        guard !idle.isEmpty, helpedAt.map({ now - $0 >= 900_000_000 }) ?? true else { return .none }
        helpedAt = now
        do {
            let help = try await store.helpStragglers(idle)
            metrics.add(.shrinksAsked, help.asked.count)
            metrics.add(.leasesSilent, help.taken)
            asked.add(help.asked)
            return help
        } catch {
            // The leases of the claim are granted all the same.
            logger.warning("stragglers not helped", metadata: [CoordinatorMetadata.error: "\(error)"])
            return .none
        }
    }
}
