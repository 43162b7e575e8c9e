import Logging
import MusterCore
import MusterPostgres
import MusterSystem
import ServiceLifecycle
import Synchronization

/// Runs the rounds of a coordinator, independent of each other: a round that fails is logged and counted, and stops no
/// other round.
///
/// A small number of lanes runs the rounds, so that they use at most half of the pool's connections and leave the rest to
/// requests. A round that hangs, for example at a lock that another transaction holds, occupies its lane until its
/// statement times out after 15 s (`Coordinator`). As long as fewer rounds hang than there are lanes, no other round waits.
/// If as many rounds hang as there are lanes, the others wait until the first of these statements times out. The bound is
/// then 15 s (I19): only a lock on whole tables hangs so many rounds at once, and syncs wait for such a lock as well.
struct RoundTable: Service {
    /// The rounds to run.
    let rounds: [Round]
    /// The number of rounds that run at once.
    let lanes: Int
    let metrics: CoordinatorMetrics
    let logger: Logger
    let clock: MonotonicClock
    /// Called with the error when a round fails.
    let onFailure: @Sendable (any Error) -> Void

    /// The number of lanes for a pool: half of its connections.
    static func lanes(connections: Int) -> Int { max(1, connections / 2) }

    /// The schedule that the lanes share.
    private final class Board: Sendable {
        let schedule: Mutex<RoundSchedule>

        init(_ schedule: RoundSchedule) {
            self.schedule = Mutex(schedule)
        }
    }

    /// Runs rounds until the coordinator stops.
    func run() async {
        // A service that returns ends all other services.
        guard !rounds.isEmpty else {
            try? await gracefulShutdown()
            return
        }
        let board = Board(
            RoundSchedule(
                periods: rounds.map(\.period), atStart: Set(rounds.indices.filter { rounds[$0].isAtStart }),
                now: clock.now()))
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                for _ in 0..<min(lanes, rounds.count) { group.addTask { await follow(board) } }
            }
        }
    }

    /// One lane: takes a round, waits until it is due, runs it, and returns it to the schedule.
    private func follow(_ board: Board) async {
        while let turn = board.schedule.withLock({ $0.take() }) {
            let wait = turn.due - clock.now()
            if wait > 0 { try? await Task.sleep(for: .nanoseconds(wait)) }
            guard !Task.isCancelled else { return }
            let began = clock.now()
            let (ending, error) = await attempt(rounds[turn.row])
            // A run that the coordinator's stop interrupts is no failure.
            guard !Task.isCancelled else { return }
            let note = board.schedule.withLock { $0.end(turn.row, ending, began: began, now: clock.now()) }
            tell(note, of: rounds[turn.row].name, error)
        }
    }

    private func attempt(_ round: Round) async -> (RoundSchedule.Ending, (any Error)?) {
        do {
            let outcome = try await round.run()
            metrics.count(round.name)
            switch outcome {
            case .finished: return (.finished, nil)
            case .unfinished: return (.unfinished, nil)
            }
        } catch {
            guard !Task.isCancelled else { return (.failed, error) }
            metrics.count(round.name, isFailure: true)
            onFailure(error)
            return (.failed, error)
        }
    }

    private func tell(_ note: RoundSchedule.Note?, of round: RoundName, _ error: (any Error)?) {
        switch note {
        case .failing(let runs)?:
            logger.warning(
                "round fails",
                metadata: [
                    CoordinatorMetadata.round: "\(round.rawValue)", CoordinatorMetadata.runs: "\(runs)",
                    CoordinatorMetadata.error: "\(error.map { "\($0)" } ?? "")",
                ])
        case .recovered(let runs)?:
            logger.info(
                "round works again",
                metadata: [CoordinatorMetadata.round: "\(round.rawValue)", CoordinatorMetadata.runs: "\(runs)"])
        case nil: break
        }
    }
}
