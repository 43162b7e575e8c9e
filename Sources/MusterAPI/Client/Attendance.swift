import Synchronization

/// Asks a server for a change, and attends to that until there is an answer.
///
/// Once a second the server is asked whether it is still there: one that is stopped, or that nothing leads to any more, would be waited for until the
/// change's own time is over, which a long list doesn't have. An answer that is lost on a connection that stays open would be waited for as long: the request is
/// sent once more beside the first, which its key makes harmless (I10). A list counts as sent for as long as the server takes something of it.
struct Attendance: Sendable {
    /// Sends a request to the server.
    let send: APISend
    /// Asks whether it is there.
    let probe: APIRequest
    /// How long it may say nothing.
    let patience: Duration
    /// After how long a request without an answer is sent once more; and again after three times as long.
    var firstPause = BodyProgress.usualPause

    /// What happens meanwhile.
    private enum Event: Sendable {
        case answer(APIResponse)
        case failure(any Error)
        /// The server says nothing any more.
        case silence
        /// The request has had no answer for so long that it is sent again.
        case isDue(after: Duration)
        /// There is nothing to wait for any more: the end of the last request is about to be told.
        case over
    }

    /// The most times that a request is sent.
    private static let most = 4

    /// The first answer to a request.
    ///
    /// - Throws: `Unreachable` where there is none.
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
                // One that can't be done now may wait for the first one, which is under way.
                case .answer(let answer) where answer.status >= 500 && running > 1: running -= 1
                case .answer(let answer): return answer
                case .failure(let error):
                    running -= 1
                    guard running == 0 else { continue }
                    // The server is there, and may have done what it was asked for: a repetition that is cut is no answer.
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

    /// What the two sides of an exchange share.
    private final class Exchange: Sendable {
        /// How many requests may be answered yet; none once one was.
        let running = Mutex(0)
    }
}
