import Synchronization

/// Asks a server for a change, and watches the server until there is an answer. It serves commands; a sync whose answer is lost is made up for
/// by `WorkerMachine.missAnswer`.
///
/// Once a second the server is probed. Without that, a server that has stopped or become unreachable would be waited for until the timeout
/// of the change, which a long list doesn't have. An answer that is lost on a connection that stays open would be waited for as long, so
/// the request is sent once more beside the first; its idempotency key makes that harmless (I10). A list counts as being sent for as long
/// as the server takes some of it.
struct Attendance: Sendable {
    /// Sends a request to the server.
    let send: APISend
    /// Asks whether the server is up.
    let probe: APIRequest
    /// How long the server may stay silent.
    let patience: Duration
    /// The time after which a request without an answer is sent once more, and again after three times as long.
    var firstPause = BodyProgress.usualPause

    /// What happens while an answer is awaited.
    private enum Event: Sendable {
        case answer(APIResponse)
        case failure(any Error)
        /// The server has stopped answering probes.
        case silence
        /// The request has been without an answer for so long that it is sent again.
        case isDue(after: Duration)
        /// No request is running any more: the result of the last one is about to be reported.
        case over
    }

    /// How often a request is sent, at the most.
    private static let most = 4

    /// The first answer to a request.
    ///
    /// - Throws: `Unreachable` if there is no answer.
    func answer(to request: APIRequest) async throws -> APIResponse {
        let progress = BodyProgress()
        let request = progress.noting(request)
        return try await withThrowingTaskGroup(of: Event.self) { tasks in
            defer { tasks.cancelAll() }
            let exchange = Exchange()
            var (running, sent) = (0, 0)
            func begin(in tasks: inout ThrowingTaskGroup<Event, any Error>) {
                (running, sent) = (running + 1, sent + 1)
                exchange.running.withLock { $0 += 1 }
                tasks.addTask { await ask(request, exchange) }
                if running == 1 { tasks.addTask { try await watch(exchange) } }
            }
            begin(in: &tasks)
            tasks.addTask { try await wait(firstPause, progress) }
            while let event = try await tasks.next() {
                switch event {
                // A repetition that the server can't carry out now may be waiting for the first request, which is still running.
                case .answer(let answer) where answer.status >= 500 && running > 1: running -= 1
                case .answer(let answer): return answer
                case .failure(let error):
                    running -= 1
                    guard running == 0 else { continue }
                    // The server is up, and may have made the change. A repetition that was cut off says nothing about that.
                    guard sent > 1, sent < Self.most, error is Unreachable else { throw error }
                    begin(in: &tasks)
                case .silence:
                    throw Unreachable("\(probe.url) is not answered any more", isTimeout: true)
                case .isDue(let pause) where sent < Self.most:
                    begin(in: &tasks)
                    tasks.addTask { try await wait(pause * 3, progress) }
                case .isDue, .over: break
                }
            }
            throw CancellationError()
        }
    }

    private func ask(_ request: APIRequest, _ exchange: Exchange) async -> Event {
        do {
            let answer = try await send(request)
            exchange.running.withLock { $0 = answer.status < 500 ? 0 : $0 - 1 }
            return .answer(answer)
        } catch {
            exchange.running.withLock { $0 -= 1 }
            return .failure(error)
        }
    }

    private func wait(_ pause: Duration, _ progress: BodyProgress) async throws -> Event {
        try await Task.sleep(for: pause)
        try await progress.rest(for: pause)
        return .isDue(after: pause)
    }

    private func watch(_ exchange: Exchange) async throws -> Event {
        var heard = ContinuousClock.now
        while ContinuousClock.now - heard < patience {
            try await Task.sleep(for: .seconds(1))
            if exchange.running.withLock({ $0 <= 0 }) { return .over }
            do {
                _ = try await send(probe)
                heard = .now
            } catch is Unreachable {}
        }
        return .silence
    }

    /// The state that the two sides of an exchange share.
    private final class Exchange: Sendable {
        /// How many requests may still be answered; 0 after the first answer.
        let running = Mutex(0)
    }
}
