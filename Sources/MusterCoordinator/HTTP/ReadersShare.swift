import HTTPTypes
import Hummingbird
import MusterAPI
import Synchronization

/// The limits of requests that only read: they follow the log, list, or ask what a group waits for.
struct ReaderLimits: Sendable {
    /// How many of these requests are answered at once, each with at most one connection to the database.
    var places: Int
    /// How long a request waits for its turn.
    var patience: Duration = .seconds(5)

    /// The limits for a pool: a quarter of its connections. The background rounds have at most half of them (`RoundTable`),
    /// so that a quarter is always left to syncs, reports and verbs.
    init(connections: Int) {
        places = max(1, connections / 4)
    }
}

/// The readers' share of the coordinator: a few places, taken in the order of asking (I19).
///
/// Without it any number of readers would be ahead of a worker's sync in the queue for the database's connections and for
/// the processor. A place is held while an answer is read and encoded, but not while a reader waits for news or receives
/// the answer.
final class ReadersShare: Sendable {
    private struct State {
        var free: Int
        var last: UInt64 = 0
        /// The waiting requests, in the order of asking.
        var waiting: [(number: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    private let state: Mutex<State>
    private let patience: Duration

    init(_ limits: ReaderLimits) {
        state = Mutex(State(free: limits.places))
        patience = limits.patience
    }

    /// How many requests wait for a place.
    var waiterCount: Int { state.withLock { $0.waiting.count } }

    /// Runs `body` in a place of its own.
    ///
    /// - Throws: the problem `busy` when no place has become free in time.
    nonisolated(nonsending) func enter<Answer>(
        _ body: nonisolated(nonsending) () async throws -> Answer
    ) async throws -> Answer {
        guard await take() else {
            try Task.checkCancellation()
            throw Problem(.busy, "more is being read than can be answered now; try again in a moment")
        }
        defer { leave() }
        return try await body()
    }

    private func take() async -> Bool {
        let isFree = state.withLock { state in
            guard state.free > 0 else { return false }
            state.free -= 1
            return true
        }
        if isFree { return true }
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask { await self.turn() }
            group.addTask { [patience] in
                try? await Task.sleep(for: patience)
                return false
            }
            var isTaken = false
            for await word in group {
                // A place that became free while time ran out must not be lost, so both results are read.
                isTaken = isTaken || word
                group.cancelAll()
            }
            return isTaken
        }
    }

    /// Waits for a place until the task is cancelled, and returns whether it has one.
    private func turn() async -> Bool {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let word = state.withLock { state -> Bool? in
                    guard !Task.isCancelled else { return false }
                    guard state.free == 0 else {
                        state.free -= 1
                        return true
                    }
                    state.waiting.append((number, continuation))
                    return nil
                }
                if let word { continuation.resume(returning: word) }
            }
        } onCancel: {
            let continuation = state.withLock { state in
                state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0).continuation }
            }
            continuation?.resume(returning: false)
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard !state.waiting.isEmpty else {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}

/// Answers requests that only read within the readers' share. Requests that change something are not limited.
struct ReadersMiddleware<Context: RequestContext>: RouterMiddleware {
    let share: ReadersShare

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard request.method == .get || request.method == .head else { return try await next(request, context) }
        return try await share.enter { try await next(request, context) }
    }
}
