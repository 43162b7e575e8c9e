import UnixSignals

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Lets work end by Ctrl-C or SIGTERM in good order: the first signal cancels it, so that it can say how far it came; a second one
/// ends the process.
enum Interruption {
    /// Runs the work.
    ///
    /// - Throws: what the work throws; `CommandFailure.ended` after a signal.
    static func watched<Answer: Sendable>(
        _ work: @escaping @Sendable () async throws -> Answer
    ) async throws -> Answer {
        // Trapped before anything starts: a signal must never find half of it unwatched.
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let received = Eventual<UnixSignal>()
        let task = Task { try await work() }
        let result = await withTaskGroup(of: Void.self) { watchers in
            watchers.addTask {
                for await signal in signals {
                    if received.current != nil { _exit(128 + signal.rawValue) }
                    received.fulfil(signal)
                    task.cancel()
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
