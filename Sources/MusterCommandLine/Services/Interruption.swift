import Glibc
import UnixSignals

/// Lets Ctrl-C or SIGTERM end work in good order. The first signal cancels the work, so that it can report how far it came; a later second
/// signal (`StopSignals`) ends the process.
enum Interruption {
    /// What is still done after a signal, once the work has ended. It ends as soon as it can when `hurried` is known: a second signal has come.
    typealias Closing = @Sendable (_ hurried: Eventual<UnixSignal>) async -> Void

    /// Runs the work.
    ///
    /// - Throws: what the work throws; `CommandFailure.ended` after a signal.
    static func watched<Answer: Sendable>(
        _ work: @escaping @Sendable () async throws -> Answer, closing: @escaping Closing = { _ in }
    ) async throws -> Answer {
        let signals = await StopSignals()
        return try await watched(work, by: { await signals.watch($0) }, closing: closing)
    }

    /// Runs the work.
    ///
    /// - Parameter watch: passes on what the signals mean, until its task is cancelled.
    static func watched<Answer: Sendable>(
        _ work: @escaping @Sendable () async throws -> Answer,
        by watch: @escaping @Sendable (_ told: (StopSignals.Wish) async -> Void) async -> Void,
        closing: @escaping Closing
    ) async throws -> Answer {
        let received = Eventual<UnixSignal>()
        let (ended, hurried) = (Eventual<Bool>(), Eventual<UnixSignal>())
        let task = Task { try await work() }
        let result = await withTaskGroup(of: Void.self) { watchers in
            watchers.addTask {
                await watch { wish in
                    switch wish {
                    case .end(let signal):
                        received.fulfil(signal)
                        task.cancel()
                    case .hurry(let signal):
                        // Work that its cancellation does not end ends with the process.
                        if ended.current == nil { _exit(128 + signal.rawValue) }
                        hurried.fulfil(signal)
                    }
                }
            }
            let result = await withTaskCancellationHandler {
                await task.result
            } onCancel: {
                task.cancel()
            }
            ended.fulfil(true)
            if case .failure = result, received.current != nil { await closing(hurried) }
            watchers.cancelAll()
            return result
        }
        guard case .failure = result, let signal = received.current else { return try result.get() }
        throw CommandFailure.ended(signal == .sigint ? .interrupted : .terminated)
    }
}
