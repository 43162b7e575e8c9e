import Synchronization

extension CurlClient {
    /// Sends a request and returns only the status and header fields of the response. The body is read and dropped, up to
    /// ``HTTPRequest/maxResponseBytes``, so that the connection can be reused. A body that is longer, is cut, or has not
    /// ended at the deadline does not change the result.
    ///
    /// A stream can't be sent this way. Cancelling the task cancels the transfer.
    public func sendForHead(_ request: HTTPRequest) async throws(CurlClientError) -> HTTPResponse {
        let exchange = HeadExchange(maxBodyBytes: request.maxResponseBytes)
        let id: TransferID
        do {
            id = try loop.start(transferRequest(for: request, BodyPipe()).0, handler: exchange)
        } catch {
            throw .loopClosed
        }
        let ending = await withTaskCancellationHandler {
            await exchange.ending()
        } onCancel: { [loop] in
            loop.cancel(id)
        }
        switch ending {
        case .answered(let response): return response
        case .failed(let error): throw .transfer(error)
        case .cancelled: throw Task.isCancelled ? .cancelled : .loopClosed
        }
    }
}

/// Keeps the head of one response for one waiting task, and drops the body.
final class HeadExchange: TransferHandler {
    /// How the exchange ended.
    enum Ending: Sendable {
        /// A head arrived; how the body ended does not matter.
        case answered(HTTPResponse)
        /// The transfer failed before a head arrived.
        case failed(TransferError)
        /// The transfer was cancelled before a head arrived.
        case cancelled
    }

    private enum State {
        /// The response is under way; `waiter` is nil until a task waits. Exit: `ended`.
        case waiting(HTTPResponse?, waiter: CheckedContinuation<Ending, Never>?)
        /// The exchange is over.
        case ended(Ending)
    }

    private let maxBodyBytes: Int64
    private let state = Mutex<State>(.waiting(nil, waiter: nil))

    init(maxBodyBytes: Int) {
        self.maxBodyBytes = Int64(max(0, maxBodyBytes))
    }

    /// Waits for the end; for one task only.
    func ending() async -> Ending {
        await withCheckedContinuation { continuation in
            let known: Ending? = state.withLock { state in
                switch state {
                case .waiting(let response, _):
                    state = .waiting(response, waiter: continuation)
                    return nil
                case .ended(let ending): return ending
                }
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    func head(_ head: ResponseHead) -> HeadVerdict {
        state.withLock { state in
            guard case .waiting(_, let waiter) = state else { return }
            state = .waiting(HTTPResponse(status: head.status, headers: head.headers), waiter: waiter)
        }
        return .accept(limit: maxBodyBytes)
    }

    func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict { .proceed }

    func finished(_ outcome: TransferOutcome) {
        let (ending, waiter): (Ending, CheckedContinuation<Ending, Never>?) = state.withLock { state in
            guard case .waiting(let response, let waiter) = state else { return (.cancelled, nil) }
            let ending = Self.ending(outcome, response)
            state = .ended(ending)
            return (ending, waiter)
        }
        waiter?.resume(returning: ending)
    }

    private static func ending(_ outcome: TransferOutcome, _ response: HTTPResponse?) -> Ending {
        if let response { return .answered(response) }
        return switch outcome {
        case .failed(let error, _): .failed(error)
        case .completed, .refused, .stopped, .cancelled: .cancelled
        }
    }
}
