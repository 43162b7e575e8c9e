import Logging
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Brings syncs that have room together with work: one claim serves all that came in while the last one ran, so that under load
/// the number of transactions stays small while the number of leases grows.
actor ClaimDispatcher: Service {
    /// What a sync gets: leases, or the reason why there can't be any.
    typealias Answer = Result<[GrantedLease], any Error>

    private let store: Store
    private let metrics: CoordinatorMetrics
    private let logger: Logger
    private let clock: MonotonicClock
    private let signal = Signal()
    private var room = WaitingRoom<CheckedContinuation<Answer, Never>>()
    private var isClosed = false

    init(store: Store, metrics: CoordinatorMetrics, logger: Logger, clock: MonotonicClock) {
        self.store = store
        self.metrics = metrics
        self.logger = logger
        self.clock = clock
    }

    /// Asks for work and waits for it up to `wait`. An empty answer means that there was none, that a later sync of the session
    /// superseded this one, or that the coordinator is stopping.
    func claim(session: SessionID, sequence: Int64, room: Int32, wait: Duration) async throws -> [GrantedLease] {
        guard !isClosed else { return [] }
        let deadline = clock.now() + wait.milliseconds * 1_000_000
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let guest = WaitingRoom<CheckedContinuation<Answer, Never>>.Guest(
                    session: session, sequence: sequence, room: room, deadline: deadline, ticket: continuation)
                self.room.enter(guest)?.ticket.resume(returning: .success([]))
                signal.raise()
            }
        } onCancel: {
            // The connection is gone; whatever is granted to this sync now is given back by the session's next one.
            signal.raise(leaving: .init(session: session, sequence: sequence))
        }
        return try answer.get()
    }

    /// There may be something new to lease: chunks were added, came back, or became due.
    func news() {
        room.news()
        signal.raise()
    }

    /// Runs claims until the coordinator stops.
    func run() async {
        await withGracefulShutdownHandler {
            for await departures in signal.stream {
                for gone in departures {
                    room.leave(gone.session, sequence: gone.sequence)?.ticket.resume(returning: .success([]))
                }
                await claimForAll()
            }
        } onGracefulShutdown: { [signal] in
            signal.finish()
        }
        isClosed = true
        for guest in room.close() { guest.ticket.resume(returning: .success([])) }
    }

    /// A look at the clock, a few times a second: deadlines, and a poll of the database in case a hint was lost.
    func tick(polls: Bool) {
        for guest in room.expire(now: clock.now()) { guest.ticket.resume(returning: .success([])) }
        if polls { news() }
    }

    private func claimForAll() async {
        while true {
            let guests = room.beginClaim()
            guard !guests.isEmpty else { return }
            let answers: [SessionID: [GrantedLease]]
            do {
                let leases = try await store.claim(
                    guests.map { ClaimRequest(session: $0.session, sequence: $0.sequence, room: $0.room) })
                metrics.add(.leasesGranted, leases.count)
                answers = Dictionary(grouping: leases, by: \.session)
            } catch {
                // Everybody is told, so that workers try another coordinator or come back later.
                logger.warning("claim failed", metadata: [CoordinatorMetadata.error: "\(error)"])
                for guest in room.endClaim(granted: Set(guests.map(\.session)), now: clock.now()) {
                    guest.ticket.resume(returning: .failure(error))
                }
                return
            }
            for guest in room.endClaim(granted: Set(answers.keys), now: clock.now()) {
                guest.ticket.resume(returning: .success(answers[guest.session] ?? []))
            }
        }
    }
}
