import Logging
import MusterCore
import MusterPostgres
import MusterSystem
import ServiceLifecycle
import Synchronization

/// Runs the rounds of a coordinator, each of them for itself: one that fails is logged and counted, and stops no other.
///
/// A small number of lanes takes them, so that they use half of the pool's connections at the most and leave the rest to requests. A
/// round that hangs, say at a lock that somebody holds, has its lane until the database gives its statement up, 15 s later
/// (`Coordinator`). As long as fewer rounds hang than there are lanes, nobody waits for them. If as many do, the others wait until
/// the first of these statements is given up: 15 s is the bound then (I19), since what hangs so many of them at once is
/// a lock on whole tables, which syncs wait for as well.
struct RoundTable: Service {
    /// The rows.
    let rounds: [Round]
    /// How many of them run at once.
    let lanes: Int
    let metrics: CoordinatorMetrics
    let logger: Logger
    let clock: MonotonicClock
    /// Told why a round failed.
    let onFailure: @Sendable (any Error) -> Void

    /// The lanes over a pool: half of its connections.
    static func lanes(connections: Int) -> Int { max(1, connections / 2) }

    /// What the lanes share.
    private final class Board: Sendable {
        let schedule: Mutex<RoundSchedule>

        init(_ schedule: RoundSchedule) {
            self.schedule = Mutex(schedule)
        }
    }

    /// Goes round until the coordinator stops.
    func run() async {
        // A service that returns ends the others.
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

    /// One lane: takes a round, waits until it is due, runs it, and brings it back.
    private func follow(_ board: Board) async {
        while let turn = board.schedule.withLock({ $0.take() }) {
            let wait = turn.due - clock.now()
            if wait > 0 { try? await Task.sleep(for: .nanoseconds(wait)) }
            guard !Task.isCancelled else { return }
            let began = clock.now()
            let (ending, error) = await attempt(rounds[turn.row])
            // Nothing went wrong when the coordinator stops in the middle of it.
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
