import NIOCore

/// How long a connection's peer may still keep the coordinator waiting. Pure state: the caller reports each step and its time.
///
/// Only a peer that owes something has a deadline: a head, the rest of a body, or the closing of the connection. While the
/// coordinator makes an answer (a long poll, a stream of events) the peer owes nothing, and its connection is never closed.
struct ConnectionPatience {
    /// What the peer owes.
    private enum Debt {
        /// The head of a request; leads to `body`.
        case head
        /// The rest of a body, of which this many bytes came in the current window; leads to `nothing`, or to `farewell` if
        /// the answer is sent before the body ends.
        case body(bytes: Int)
        /// Nothing, until the answers are sent; leads to `head`.
        case nothing
        /// The closing of the connection, which has no further use.
        case farewell
    }

    private let limits: ConnectionLimits
    private var debt = Debt.head
    private var unanswered = 0
    /// When the peer has kept the coordinator waiting for too long; `nil` while it owes nothing.
    private(set) var deadline: NIODeadline?
    /// Since when the peer has owed its current debt; `nil` while it owes nothing.
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

    /// The head of a request has arrived; its body follows.
    mutating func receivedHead(now: NIODeadline) {
        unanswered += 1
        enter(.body(bytes: 0), limits.bodyWindow, now)
    }

    /// A piece of a body has arrived.
    mutating func receivedBody(bytes: Int) {
        guard case .body(let count) = debt else { return }
        debt = .body(bytes: count + bytes)
    }

    /// A request has arrived completely.
    mutating func receivedEnd(now: NIODeadline) {
        guard case .body = debt else { return enter(.head, limits.idle, now) }
        if unanswered == 0 { return enter(.head, limits.idle, now) }
        debt = .nothing
        (deadline, waitingSince) = (nil, nil)
    }

    /// An answer has been sent.
    mutating func answered(now: NIODeadline) {
        unanswered = max(0, unanswered - 1)
        guard unanswered == 0 else { return }
        switch debt {
        case .head, .farewell: break
        case .body: enter(.farewell, limits.farewell, now)
        case .nothing: enter(.head, limits.idle, now)
        }
    }

    /// The coordinator sends nothing more; the peer has to close the connection.
    mutating func hungUp(now: NIODeadline) {
        enter(.farewell, limits.farewell, now)
    }

    /// Whether the connection is to be closed at its deadline; otherwise it may have a later one.
    ///
    /// - Parameter wantsBytes: whether the coordinator would take more of a body now. If not, the coordinator is the slower side.
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
