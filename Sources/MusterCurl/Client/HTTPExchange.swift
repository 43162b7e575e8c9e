import Synchronization

/// Collects one whole response for one waiting task.
final class HTTPExchange: TransferHandler {
    /// How the exchange ended.
    enum Ending: Sendable {
        case response(HTTPResponse)
        case tooLarge
        case cancelled
        case failed(TransferError)
    }

    private enum State {
        /// The response is under way; `waiter` is nil until a task waits. Exits: `ended`.
        case collecting(HTTPResponse?, waiter: CheckedContinuation<Ending, Never>?)
        /// The exchange is over.
        case ended(Ending)
    }

    private let maxResponseBytes: Int64
    private let state = Mutex<State>(.collecting(nil, waiter: nil))

    init(maxResponseBytes: Int) {
        self.maxResponseBytes = Int64(max(0, maxResponseBytes))
    }

    /// Waits for the end; for one task only.
    func ending() async -> Ending {
        await withCheckedContinuation { continuation in
            let known: Ending? = state.withLock { state in
                switch state {
                case .collecting(let response, _):
                    state = .collecting(response, waiter: continuation)
                    return nil
                case .ended(let ending):
                    return ending
                }
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    func head(_ head: ResponseHead) -> HeadVerdict {
        state.withLock { state in
            guard case .collecting(_, let waiter) = state else { return }
            state = .collecting(HTTPResponse(status: head.status, headers: head.headers), waiter: waiter)
        }
        if case .contentLength(let length) = head.bodyFraming, length > maxResponseBytes { return .refuse }
        return .accept(limit: maxResponseBytes)
    }

    func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        state.withLock { state in
            guard case .collecting(var response?, let waiter) = state else { return }
            // Taken out of the state first, so that the bytes are appended in place and not to a copy.
            state = .collecting(nil, waiter: nil)
            response.body.append(contentsOf: bytes)
            state = .collecting(response, waiter: waiter)
        }
        return .proceed
    }

    func finished(_ outcome: TransferOutcome) {
        let (ending, waiter): (Ending, CheckedContinuation<Ending, Never>?) = state.withLock { state in
            guard case .collecting(let response, let waiter) = state else { return (.cancelled, nil) }
            let ending = Self.ending(outcome, response)
            state = .ended(ending)
            return (ending, waiter)
        }
        waiter?.resume(returning: ending)
    }

    private static func ending(_ outcome: TransferOutcome, _ response: HTTPResponse?) -> Ending {
        switch outcome {
        case .completed(_, .surplus), .refused: .tooLarge
        case .completed: response.map { .response($0) } ?? .cancelled
        case .stopped, .cancelled: .cancelled
        case .failed(let error, _): .failed(error)
        }
    }
}
