import NIOCore

/// How long a connection's peer may still keep the coordinator waiting: pure state, told what happens and when.
///
/// Only a peer that owes something has a deadline: a head, the rest of a body, or its own farewell. While an answer is being made (a
/// long poll, a stream of events) the peer owes nothing, and the connection is never taken from it.
struct ConnectionPatience {
    /// What the peer owes.
    private enum Debt {
        /// The head of a request; leads to `body`.
        case head
        /// The rest of a body, of which this many bytes came in the current window; leads to `nothing`, or to `farewell` when the answer
        /// was there first.
        case body(bytes: Int)
        /// Nothing, until the answers are out; leads to `head`.
        case nothing
        /// The end of the connection, which has no further use.
        case farewell
    }

    private let limits: ConnectionLimits
    private var debt = Debt.head
    private var unanswered = 0
    /// When the peer has kept the coordinator waiting for long enough; `nil` while it owes nothing.
    private(set) var deadline: NIODeadline?
    /// Since when the peer has owed what it owes; `nil` while it owes nothing.
    private(set) var waitingSince: NIODeadline?

    /// A connection that was opened now.
    init(_ limits: ConnectionLimits, now: NIODeadline) {
        self.limits = limits
        deadline = now + limits.firstHead
        waitingSince = now
    }

    /// Whether no request is under way.
    var isIdle: Bool {
        switch debt {
        case .head, .farewell: true
        case .body, .nothing: false
        }
    }

    /// The head of a request is here; its body follows.
    mutating func receivedHead(now: NIODeadline) {
        unanswered += 1
        enter(.body(bytes: 0), limits.bodyWindow, now)
    }

    /// A piece of a body is here.
    mutating func receivedBody(bytes: Int) {
        guard case .body(let count) = debt else { return }
        debt = .body(bytes: count + bytes)
    }

    /// A request is here as a whole.
    mutating func receivedEnd(now: NIODeadline) {
        guard case .body = debt else { return enter(.head, limits.idle, now) }
        if unanswered == 0 { return enter(.head, limits.idle, now) }
        debt = .nothing
        (deadline, waitingSince) = (nil, nil)
    }

    /// An answer is out.
    mutating func answered(now: NIODeadline) {
        unanswered = max(0, unanswered - 1)
        guard unanswered == 0 else { return }
        switch debt {
        case .head, .farewell: break
        case .body: enter(.farewell, limits.farewell, now)
        case .nothing: enter(.head, limits.idle, now)
        }
    }

    /// Nothing more is sent to the peer, which has to hang up.
    mutating func hungUp(now: NIODeadline) {
        enter(.farewell, limits.farewell, now)
    }

    /// Whether the connection is to be closed at its deadline; otherwise it may have a later one.
    ///
    /// - Parameter wantsBytes: whether the coordinator would take more of a body now. If not, it is the slower one.
    mutating func isOver(now: NIODeadline, wantsBytes: Bool) -> Bool {
        guard let deadline, now >= deadline else { return false }
        guard case .body(let bytes) = debt, bytes >= limits.leastBody || !wantsBytes else { return true }
        enter(.body(bytes: 0), limits.bodyWindow, now)
        return false
    }

    private mutating func enter(_ debt: Debt, _ time: TimeAmount, _ now: NIODeadline) {
        self.debt = debt
        deadline = now + time
        waitingSince = now
    }
}
