import CLibpq
import MusterSystem
import Synchronization

/// Owns a `PGcancel`: what is needed to ask the server, over another connection, to stop the running statement.
///
/// `@unchecked Sendable` is safe here: libpq documents `PQcancel` as usable from any thread, it only reads the object,
/// and the object is freed once, by `deinit`.
final class CancelRequest: @unchecked Sendable {
    private let cancel: OpaquePointer

    init(owning cancel: OpaquePointer) {
        self.cancel = cancel
    }

    deinit {
        PQfreeCancel(cancel)
    }

    /// Sends the request and waits until the server has taken it. It blocks, for ever if the server hangs.
    func send() {
        // The result of the statement shows whether the request took effect, so the message of a failure is not needed.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
            _ = PQcancel(cancel, message.baseAddress, 256)
        }
    }
}

/// Carries a task's cancellation to the connection's thread while the thread waits for the server.
///
/// Statements are numbered, so that a late cancellation cannot hit the next statement.
final class Interruption: Sendable {
    private struct State {
        var statement: UInt64 = 0
        var cancelled = false
        var requestsUnderWay = 0
    }

    private let state = Mutex(State())
    let flag: EventDescriptor

    init() throws(PostgresError) {
        flag = try .flag()
    }

    /// Begins a statement and returns its number.
    func begin() -> UInt64 {
        flag.take()
        return state.withLock { state in
            state.statement += 1
            state.cancelled = false
            return state.statement
        }
    }

    /// Notes that the task that runs the statement is cancelled, and wakes the connection's thread.
    func cancel(statement: UInt64) {
        let current = state.withLock { state in
            guard state.statement == statement else { return false }
            state.cancelled = true
            return true
        }
        if current {
            flag.raise()
        }
    }

    func isCancelled(statement: UInt64) -> Bool {
        state.withLock { $0.statement == statement && $0.cancelled }
    }

    /// Whether a cancel request may still reach the server, and then hit the statement that runs by then.
    var requestIsUnderWay: Bool { state.withLock { $0.requestsUnderWay > 0 } }

    /// Sends a cancel request from a thread of its own, since that may block for as long as the server hangs.
    func send(_ request: CancelRequest) throws(PostgresError) {
        state.withLock { $0.requestsUnderWay += 1 }
        do {
            try SystemThread.run { [self] in
                request.send()
                requestEnded()
            }
        } catch {
            requestEnded()
            throw error
        }
    }

    private func requestEnded() {
        state.withLock { $0.requestsUnderWay -= 1 }
        flag.raise()
    }
}
