import Glibc
import UnixSignals

/// Lets Ctrl-C or SIGTERM end work in good order. The first signal cancels the work, so that it can report how far it came; a later second
/// signal (`StopSignals`) ends the process.
enum Interruption {
    /// Runs the work.
    ///
    /// - Throws: what the work throws; `CommandFailure.ended` after a signal.
    static func watched<Answer: Sendable>(
        _ work: @escaping @Sendable () async throws -> Answer
    ) async throws -> Answer {
        let signals = await StopSignals()
        let received = Eventual<UnixSignal>()
        let task = Task { try await work() }
        let result = await withTaskGroup(of: Void.self) { watchers in
            watchers.addTask {
                await signals.watch { wish in
                    switch wish {
                    case .end(let signal):
                        received.fulfil(signal)
                        task.cancel()
                    case .hurry(let signal): _exit(128 + signal.rawValue)
                    }
                }
            }
            let result = await withTaskCancellationHandler {
                await task.result
            } onCancel: {
                task.cancel()
            }
            watchers.cancelAll()
            return result
        }
        guard case .failure = result, let signal = received.current else { return try result.get() }
        throw CommandFailure.ended(signal == .sigint ? .interrupted : .terminated)
    }
}
