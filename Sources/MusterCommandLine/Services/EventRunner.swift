import MusterAPI
import MusterCore
import MusterSystem
import ServiceLifecycle

/// A named consumer that runs a command for each event: one at a time, in the order of the log, at least once. Of several processes with
/// the same name one works, and the others wait for its end.
///
/// An event is acknowledged only when its command has succeeded: after this process was killed, its successor begins with the event that
/// was being handled.
struct EventRunner: Service {
    /// The coordinator.
    let client: MusterClient
    /// The name under which the place in the log is kept.
    let consumer: String
    /// Which groups' events are wanted.
    let groups: String
    /// Which types of events are wanted; all when empty.
    let types: [String]
    /// The command to run.
    let command: EventCommand
    /// Where failures are reported.
    let console: Console

    /// The waits before the command is run again: 1 s, 2 s, 4 s and so on, up to a minute.
    private static let backoff = Backoff(first: .seconds(1), longest: .seconds(60), jitter: 0)
    /// The most events of one answer.
    private static let page = 100

    /// Runs until shutdown, which lets a running command finish.
    func run() async throws {
        // The coordinator may be away for any length of time.
        let patience = Patience(console: console)
        let hold = ConsumerHold(client: client, consumer: consumer, console: console)
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            do {
                try await cancelWhenGracefulShutdown { try await hold.take(patience) }
            } catch  where Task.isShuttingDownGracefully || error is CancellationError {
                return
            }
            let isDone: Bool
            do {
                isDone = try await work(while: hold, patience)
            } catch {
                await hold.release()
                throw error
            }
            if isDone { return await hold.release() }
        }
    }

    /// Handles events as long as this process holds the consumer; false when another process holds it now.
    private func work(while hold: ConsumerHold, _ patience: Patience) async throws -> Bool {
        try await withThrowingTaskGroup(of: Bool.self) { tasks in
            tasks.addTask {
                try await work(hold, patience)
            }
            tasks.addTask {
                try await hold.keep()
                return false
            }
            defer { tasks.cancelAll() }
            return try await tasks.next() ?? true
        }
    }

    private func work(_ hold: ConsumerHold, _ patience: Patience) async throws -> Bool {
        var acknowledged: Int64 = 0
        var log: String?
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            let page: EventsDocument
            do {
                page = try await cancelWhenGracefulShutdown {
                    try await patience.persist(until: nil, usual: Limits.followerPoll) { try await read() }
                }
            } catch  where Task.isShuttingDownGracefully || error is CancellationError {
                return true
            } catch let problem as Problem where problem.code == .eventsGone {
                acknowledged = try await passOver(problem, patience)
                continue
            } catch let problem as Problem where problem.code == .otherLog {
                continue
            }
            // A position in another log says nothing of this one.
            if page.log != log { (log, acknowledged) = (page.log, 0) }
            do {
                switch try await deal(with: page, after: &acknowledged, hold, patience) {
                case .done, .stale: continue
                case .lost: return false
                case .stopped: return true
                }
            } catch let problem as Problem where problem.code == .otherLog {
                // The handled events may belong to a lost log. The place that the coordinator keeps does not.
                console.remark("\(problem.detail); going on at the place that it has kept")
                acknowledged = 0
            }
        }
        return true
    }

    /// The result of a page of events: all of it is handled, it has to be read anew, another process handles the rest, or this process stops.
    private enum Dealing {
        case done, stale, lost, stopped
    }

    /// Handles the events after a position, and moves it. Events that another process has handled meanwhile lie before it.
    private func deal(
        with page: EventsDocument, after acknowledged: inout Int64, _ hold: ConsumerHold, _ patience: Patience
    ) async throws -> Dealing {
        for event in page.items where event.position > acknowledged {
            switch try await hold.standing(patience) {
            case .held: break
            case .regained: return .stale
            case .lost: return .lost
            }
            guard try await deal(with: event) else { return .stopped }
            acknowledged = try await acknowledge(event.position, of: page.log, patience)
        }
        // The place also moves past events that this consumer does not want; otherwise they would be searched again and again.
        if page.next > acknowledged {
            acknowledged = try await acknowledge(page.next, of: page.log, patience)
        }
        return .done
    }

    private func read() async throws -> EventsDocument {
        try await client.consumerEvents(
            consumer,
            limit: Self.page,
            wait: Limits.followerPoll,
            groups: groups,
            types: types
        )
    }

    /// Runs the command until it succeeds; false when the shutdown came first.
    private func deal(with event: EventDocument) async throws -> Bool {
        var failures = 0
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            guard let failure = await command.run(for: event) else { return true }
            failures += 1
            let delay = Self.backoff.delay(failures: failures)
            let isLast = Task.isShuttingDownGracefully || Task.isCancelled
            let next = isLast ? "it is run again when this consumer is" : "again in \(DurationNotation.format(delay))"
            console.remark(
                TextWidth.escaped("event \(event.position) (\(event.type) of \(event.subject)): \(failure); \(next)"))
            if isLast { break }
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: delay) }
        }
        return false
    }

    /// Acknowledges even while this process stops, so that handled events are not handled again.
    private func acknowledge(_ position: Int64, of log: String? = nil, _ patience: Patience) async throws -> Int64 {
        try await patience.persist(until: nil) {
            try await client.acknowledge(position, of: log, consumer: consumer).position
        }
    }

    /// Goes on with the oldest event that is kept, and reports what was missed.
    private func passOver(_ problem: Problem, _ patience: Patience) async throws -> Int64 {
        guard let oldest = problem.oldest, oldest > 1 else { throw problem }
        console.remark("events before \(oldest) are not kept any more and were missed; going on with that one")
        return try await acknowledge(oldest - 1, patience)
    }
}
