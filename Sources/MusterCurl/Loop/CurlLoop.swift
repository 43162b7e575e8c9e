import Synchronization

/// Limits of one loop.
public struct CurlLoopConfiguration: Sendable, Hashable {
    /// Connections to one host and port at once; 0 for no limit. Transfers beyond the limit wait.
    public var maxConnectionsPerHost: Int
    /// Connections at once; 0 for no limit.
    public var maxConnections: Int
    /// Idle connections kept for reuse.
    public var connectionCacheSize: Int
    /// Connections to an origin beyond the most that were in use at once during this span are closed within twice the
    /// span. libcurl itself closes a connection that was unused for two minutes.
    public var idlePatience: Duration

    /// Makes a configuration.
    public init(
        maxConnectionsPerHost: Int = 0, maxConnections: Int = 256, connectionCacheSize: Int = 64,
        idlePatience: Duration = .seconds(60)
    ) {
        self.maxConnectionsPerHost = maxConnectionsPerHost
        self.maxConnections = maxConnections
        self.connectionCacheSize = connectionCacheSize
        self.idlePatience = idlePatience
    }
}

/// Why a loop cannot start, or cannot take a request.
public enum CurlLoopError: Error, Sendable, Hashable {
    /// libcurl could not be initialized.
    case curlNotInitialized
    /// The system gave no thread; the error number says why.
    case threadNotStarted(errno: Int32)
    /// The loop was shut down, or is being shut down.
    case closed
}

/// A thread with a libcurl multi handle, which carries out any number of transfers at once.
///
/// Other threads speak to it through an inbox; it speaks to them through ``TransferHandler``, on its own thread. Every
/// started transfer gets exactly one `finished`. After ``shutdown()`` returned no handler is called any more. A loop
/// that is dropped without shutdown ends by itself, cancelling what runs.
///
/// Transfers by ftp, ftps and sftp run on a second thread, which is started for the first of them: libcurl blocks while
/// it waits for such a server's last reply, so one silent server would hold up every HTTP transfer. Transfers on the
/// second thread may hold each other up for some seconds.
public final class CurlLoop: TransferLoop {
    private enum FileLane {
        /// No transfer has needed the lane yet. Exits: `open`, `closed`.
        case unopened
        /// A transfer by ftp, ftps or sftp was started. Exits: `closed`.
        case open(LoopLane)
        /// The loop is being shut down.
        case closed(LoopLane?)
    }

    private let configuration: CurlLoopConfiguration
    private let httpLane: LoopLane
    private let fileLane = Mutex(FileLane.unopened)

    /// Starts the loop's thread.
    public init(_ configuration: CurlLoopConfiguration = CurlLoopConfiguration()) throws(CurlLoopError) {
        self.configuration = configuration
        httpLane = try LoopLane(configuration, .http)
    }

    /// Whether a URL is of ftp, ftps or sftp, whose transfers have a thread of their own.
    public static func isOfFileServer(_ url: String) -> Bool {
        FileScheme(url: url) != nil
    }

    /// Hands a request to the loop. The request is not checked here: a fault in it is reported by `finished`.
    ///
    /// The handler may be called before this returns. Throws `closed` if the loop is (being) shut down; then the handler
    /// is never called.
    @discardableResult
    public func start(_ request: TransferRequest, handler: any TransferHandler) throws(CurlLoopError) -> TransferID {
        let lane = Self.isOfFileServer(request.url) ? try openFileLane() : httpLane
        guard let id = lane.start(request, handler) else { throw .closed }
        return id
    }

    /// Ends a transfer; its `finished` comes soon with `cancelled`, unless it ended otherwise before. Calls for it may
    /// still come until then. Without effect on a transfer that is over.
    public func cancel(_ id: TransferID) {
        lane(of: id)?.post(.cancel(id))
    }

    /// Goes on with a transfer whose handler or upload source paused. Never lost: a resume that comes while the pausing
    /// call is still running takes effect after it. Without effect on a transfer that is not paused, or is over.
    public func resume(_ id: TransferID) {
        lane(of: id)?.post(.resume(id))
    }

    /// Closes the idle connections that a request like this one could reuse. Call it when a transfer of another loop
    /// waits for an answer (``TransferHandler/stalled()``). Only for http and https.
    public func closeIdle(like request: TransferRequest) {
        httpLane.post(.closeIdle(request))
    }

    /// Cancels every transfer, calls every `finished`, ends the threads and waits for their end. May be called
    /// concurrently and more than once. A handler must not wait for it.
    public func shutdown() async {
        httpLane.close()
        let files: LoopLane? = fileLane.withLock { state in
            switch state {
            case .unopened:
                state = .closed(nil)
                return nil
            case .open(let lane):
                state = .closed(lane)
                return lane
            case .closed(let lane):
                return lane
            }
        }
        files?.close()
        await httpLane.join()
        await files?.join()
    }

    private func openFileLane() throws(CurlLoopError) -> LoopLane {
        try fileLane.withLock { (state) throws(CurlLoopError) in
            switch state {
            case .unopened:
                let lane = try LoopLane(configuration, .files)
                state = .open(lane)
                return lane
            case .open(let lane): return lane
            case .closed: throw .closed
            }
        }
    }

    private func lane(of id: TransferID) -> LoopLane? {
        switch id.lane {
        case .http: httpLane
        case .files:
            fileLane.withLock { state in
                switch state {
                case .unopened: nil
                case .open(let lane): lane
                case .closed(let lane): lane
                }
            }
        }
    }
}
