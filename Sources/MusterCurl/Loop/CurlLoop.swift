import CLibcurl
import Synchronization

/// Limits of one loop.
public struct CurlLoopConfiguration: Sendable, Hashable {
    /// Connections to one host and port at once; 0 for no limit. Transfers beyond wait for their turn.
    public var maxConnectionsPerHost: Int
    /// Connections at once; 0 for no limit.
    public var maxConnections: Int
    /// Idle connections kept for reuse.
    public var connectionCacheSize: Int

    /// Makes a configuration.
    public init(maxConnectionsPerHost: Int = 0, maxConnections: Int = 256, connectionCacheSize: Int = 64) {
        self.maxConnectionsPerHost = maxConnectionsPerHost
        self.maxConnections = maxConnections
        self.connectionCacheSize = connectionCacheSize
    }
}

/// Why a loop cannot do what was asked of it.
public enum CurlLoopError: Error, Sendable, Hashable {
    /// libcurl could not be initialized.
    case curlNotInitialized
    /// The system gave no thread; the error number says why.
    case threadNotStarted(errno: Int32)
    /// The loop was shut down, or is being shut down.
    case closed
}

/// One thread with one libcurl multi handle, which carries out any number of transfers at once.
///
/// Other threads speak to it through an inbox; it speaks to them through ``TransferHandler``, on its own thread. Every
/// started transfer gets exactly one `finished`. After ``shutdown()`` returned no handler is called any more. A loop
/// that is dropped without shutdown ends by itself, cancelling what runs.
public final class CurlLoop: Sendable {
    private enum Lifecycle {
        /// The thread runs. Exits: `joining`.
        case running(LoopThread)
        /// Somebody waits for the thread's end; the others wait with them. Exits: `joined`.
        case joining([CheckedContinuation<Void, Never>])
        /// The thread is over.
        case joined
    }

    private enum ShutdownStep {
        case join(LoopThread)
        case wait
        case done(CheckedContinuation<Void, Never>)
    }

    private let inbox: LoopInbox
    private let lifecycle: Mutex<Lifecycle>

    /// Starts the loop's thread.
    public init(_ configuration: CurlLoopConfiguration = CurlLoopConfiguration()) throws(CurlLoopError) {
        guard let multi = MultiHandle() else { throw .curlNotInitialized }
        multi.set(CURLMOPT_MAX_HOST_CONNECTIONS, max(0, configuration.maxConnectionsPerHost))
        multi.set(CURLMOPT_MAX_TOTAL_CONNECTIONS, max(0, configuration.maxConnections))
        multi.set(CURLMOPT_MAXCONNECTS, max(1, configuration.connectionCacheSize))
        let inbox = LoopInbox(multi)
        self.inbox = inbox
        let thread = try LoopThread { LoopEngine(multi: multi, inbox: inbox).run() }
        self.lifecycle = Mutex(.running(thread))
    }

    deinit {
        inbox.close()
        if case .running(let thread) = lifecycle.withLock({ $0 }) { thread.detach() }
    }

    /// Hands a request to the loop. Nothing about it is checked here: whatever is wrong with it comes as `finished`.
    ///
    /// The handler may be called before this returns. Throws `closed` if the loop is (being) shut down; then the handler
    /// is never called.
    @discardableResult
    public func start(_ request: TransferRequest, handler: any TransferHandler) throws(CurlLoopError) -> TransferID {
        guard let id = inbox.start(request, handler) else { throw .closed }
        return id
    }

    /// Ends a transfer; its `finished` comes soon with `cancelled`, unless it ended otherwise before. Calls for it may
    /// still come until then. Without effect on a transfer that is over.
    public func cancel(_ id: TransferID) {
        inbox.post(.cancel(id))
    }

    /// Goes on with a transfer whose handler or upload source paused. Never lost: a resume that comes while the pausing
    /// call is still running takes effect after it. Without effect on a transfer that is not paused, or is over.
    public func resume(_ id: TransferID) {
        inbox.post(.resume(id))
    }

    /// Cancels every transfer, calls every `finished`, ends the thread and waits for its end. May be called by many and
    /// more than once. Must not be waited for by a handler.
    public func shutdown() async {
        inbox.close()
        await withCheckedContinuation { continuation in
            let step: ShutdownStep = lifecycle.withLock { state in
                switch state {
                case .running(let thread):
                    state = .joining([continuation])
                    return .join(thread)
                case .joining(let waiters):
                    state = .joining(waiters + [continuation])
                    return .wait
                case .joined:
                    return .done(continuation)
                }
            }
            switch step {
            case .join(let thread): join(thread)
            case .wait: break
            case .done(let continuation): continuation.resume()
            }
        }
    }

    /// Joining blocks, so a thread of its own does it.
    private func join(_ thread: LoopThread) {
        let wait: @Sendable () -> Void = {
            thread.join()
            let waiters: [CheckedContinuation<Void, Never>] = self.lifecycle.withLock { state in
                guard case .joining(let waiters) = state else { return [] }
                state = .joined
                return waiters
            }
            for waiter in waiters { waiter.resume() }
        }
        do {
            try LoopThread(wait).detach()
        } catch {
            // Without a thread to spare, blocking this one is what remains; the loop's thread ends promptly.
            wait()
        }
    }
}
