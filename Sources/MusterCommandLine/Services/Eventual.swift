import Synchronization

/// A value that one task finds out and others wait for.
final class Eventual<Value: Sendable>: Sendable {
    private enum State {
        /// The value is not known yet; leads to `known`.
        case awaited([Int: CheckedContinuation<Value, any Error>], next: Int)
        /// The value, for good.
        case known(Value)
    }

    private let state = Mutex(State.awaited([:], next: 0))

    /// A value that isn't known yet.
    init() {}

    /// The value, once it is known.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled.
    func value() async throws -> Value {
        let ticket = state.withLock { state in
            guard case .awaited(let waiting, let next) = state else { return 0 }
            state = .awaited(waiting, next: next + 1)
            return next
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer: Result<Value, any Error>? = state.withLock { state in
                    switch state {
                    case .known(let value):
                        return .success(value)
                    case .awaited(var waiting, let next):
                        // The cancellation handler may have run already, without a continuation to resume.
                        if Task.isCancelled { return .failure(CancellationError()) }
                        waiting[ticket] = continuation
                        state = .awaited(waiting, next: next)
                        return nil
                    }
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            let continuation: CheckedContinuation<Value, any Error>? = state.withLock { state in
                guard case .awaited(var waiting, let next) = state else { return nil }
                let continuation = waiting.removeValue(forKey: ticket)
                state = .awaited(waiting, next: next)
                return continuation
            }
            continuation?.resume(throwing: CancellationError())
        }
    }

    /// Sets the value; a second call changes nothing.
    func fulfil(_ value: Value) {
        let waiting: [CheckedContinuation<Value, any Error>] = state.withLock { state in
            guard case .awaited(let waiting, _) = state else { return [] }
            state = .known(value)
            return Array(waiting.values)
        }
        for continuation in waiting { continuation.resume(returning: value) }
    }

    /// The value if it is known.
    var current: Value? {
        state.withLock { state in if case .known(let value) = state { value } else { nil } }
    }
}
