import CLibcurl
import MusterSystem
import Synchronization
import SystemPackage

/// One thread with one multi handle. A lane that is dropped without `join` ends by itself.
final class LoopLane: Sendable {
    private enum Lifecycle {
        /// The thread runs. Exits: `joining`.
        case running(SystemThread)
        /// A helper thread joins the thread, and these tasks wait for it. Exits: `joined`.
        case joining([CheckedContinuation<Void, Never>])
        /// The thread is over.
        case joined
    }

    private enum JoinStep {
        case join(SystemThread)
        case wait
        case done(CheckedContinuation<Void, Never>)
    }

    private let inbox: LoopInbox
    private let lifecycle: Mutex<Lifecycle>

    /// Starts the thread.
    init(_ configuration: CurlLoopConfiguration, _ lane: TransferID.Lane) throws(CurlLoopError) {
        guard let multi = MultiHandle() else { throw .curlNotInitialized }
        multi.set(CURLMOPT_MAX_HOST_CONNECTIONS, max(0, configuration.maxConnectionsPerHost))
        multi.set(CURLMOPT_MAX_TOTAL_CONNECTIONS, max(0, configuration.maxConnections))
        multi.set(CURLMOPT_MAXCONNECTS, max(1, configuration.connectionCacheSize))
        let inbox = LoopInbox(multi, lane)
        self.inbox = inbox
        let patience = configuration.idlePatience
        let thread: SystemThread
        do {
            thread = try SystemThread { LoopEngine(multi: multi, inbox: inbox, idlePatience: patience).run() }
        } catch {
            throw .threadNotStarted(errno: error.rawValue)
        }
        self.lifecycle = Mutex(.running(thread))
    }

    deinit {
        inbox.close()
        if case .running(let thread) = lifecycle.withLock({ $0 }) { thread.detach() }
    }

    /// Hands a request to the thread; nil if the lane is closed.
    func start(_ request: TransferRequest, _ handler: any TransferHandler) -> TransferID? {
        inbox.start(request, handler)
    }

    /// Posts any other command; without effect when the lane is closed.
    func post(_ command: LoopCommand) {
        inbox.post(command)
    }

    /// Takes no more requests, and lets the thread cancel what it has and end.
    func close() {
        inbox.close()
    }

    /// Waits for the thread's end, once the lane is closed.
    func join() async {
        await withCheckedContinuation { continuation in
            let step: JoinStep = lifecycle.withLock { state in
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
    private func join(_ thread: SystemThread) {
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
            try SystemThread(wait).detach()
        } catch {
            // If no thread can be started, this one blocks; the lane's thread ends promptly.
            wait()
        }
    }
}
