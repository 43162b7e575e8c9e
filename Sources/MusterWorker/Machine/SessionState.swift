import MusterAPI
import MusterCore

/// The state of the worker's session.
enum SessionState: Sendable {
    /// There is no session; the worker asks for one at `retryAt`. Exits: `opening`, `over`.
    case absent(retryAt: Int64, failures: Int)
    /// A session was asked for at `requested`. Exits: `open`, `absent`, `over`.
    case opening(requested: Int64, failures: Int)
    /// A session is open, as far as the worker knows. Exits: `absent` when it is gone (404), `closing`, `over`.
    case open(OpenSession)
    /// Every write has stopped and the coordinator is being told. Exits: `over`.
    case closing
    /// The worker is done; nothing follows.
    case over
}

/// A session that a coordinator opened for this worker.
struct OpenSession: Sendable {
    let id: SessionID
    /// When it was opened.
    let opened: Int64
    var trust: SessionTrust
    /// Whether the trust has ended and writing is suspended.
    var isSuspended = false
    /// The sequence of the newest sync.
    var lastSequence: Int64 = 0
    /// When it was sent.
    var lastSent: Int64
    /// The sync that may wait for work.
    var poll: SyncInFlight?
    /// The sync that is answered at once: it brings news, or keeps the session alive.
    var prompt: SyncInFlight?
    /// Syncs without an answer in a row.
    var failures = 0
    /// No sync is sent before this.
    var notBefore: Int64 = .min
    /// No poll is sent before this.
    var pollNotBefore: Int64 = .min
    /// Whether a sink's state changed, or a job stopped as it was told to, since the last sync.
    var hasNews = false

    /// Every sync up to here was answered or given up (rule 3 of the protocol).
    var settled: Int64 {
        min(poll?.sequence ?? .max, prompt?.sequence ?? .max, lastSequence + 1) - 1
    }
}

/// A sync whose answer is awaited.
struct SyncInFlight: Sendable {
    let sequence: Int64
    let sent: Int64
    /// How long the coordinator may hold the answer back, in nanoseconds.
    let wait: Int64
    /// The reports that it carried.
    let receipts: [ReportLedger.Receipt]
    /// The received bytes that it told of.
    let receivedBytes: Int64
    /// The use of byte budgets that it told of.
    let traffic: [Traffic]
    /// When a later sync was sent, which makes the coordinator answer this one with nothing.
    var supersededAt: Int64?
}

/// The stages of the worker, from work to its end.
enum Course: Sendable, Hashable {
    /// It takes work. Exits: `draining`, `over`.
    case working
    /// It takes nothing more; fetches are given back, finalizations may end. Exits: `hurrying`, `over`.
    case draining(since: Int64)
    /// Finalizations are given back as well. Exits: `leaving`, `over`.
    case hurrying(since: Int64)
    /// The jobs that still ran were aborted. Exits: `over`.
    case leaving(since: Int64)
    /// `stop` was said.
    case over

    /// When the drain began.
    var drainSince: Int64? {
        switch self {
        case .draining(let since), .hurrying(let since), .leaving(let since): since
        case .working, .over: nil
        }
    }
}
