// The time limits that libcurl does not keep, or keeps in another sense. Times are monotonic nanoseconds.
extension Transfer {
    /// The peer's turn to speak begins now.
    func waitForPeer() {
        let now = monotonicNanoseconds()
        phase = .waiting(since: now)
        armPeerTimer(since: now)
    }

    /// Since when the transfer waits for an answer of the origin; nil if it has answered, or owes nothing.
    var unansweredSince: UInt64? {
        switch phase {
        case .connecting: startedAt
        case .waiting(let since): upload.isNone ? since : nil
        case .redirecting(let since): since
        case .body, .closing, .draining, .ended: nil
        }
    }

    func armPeerTimer(since: UInt64) {
        timers.arm(since &+ firstBytePatience.nanosecondsClamped)
    }

    func armDeadline() {
        if let due = deadline { timers.arm(due) }
    }

    func startSpeedWindow(at now: UInt64) {
        guard let lowSpeed else { return }
        speedWindow.begin(lowSpeed, at: now, bytes: bytesReceived)
        timers.arm(speedWindow.due)
    }

    private var deadline: UInt64? {
        request.deadline.map { startedAt &+ $0.nanosecondsClamped }
    }

    /// While commands and replies are exchanged, libcurl 7.88 can hold a file server's reply in its TLS buffer and still
    /// wait for the socket. This interval makes it look again.
    private static let commandHeartbeatNanoseconds: UInt64 = 50_000_000

    /// How long a file server may take to confirm the end after it has sent everything.
    private static let goodbyeNanoseconds: UInt64 = 5_000_000_000
    /// How long the small rest of a refused response may take, after which another request can use the connection. It
    /// comes with its head, or a new connection is cheaper than waiting for it.
    static let restNanoseconds: UInt64 = 1_000_000_000

    /// Lets the loop look again soon, if that is needed in this phase.
    func armHeartbeat(at now: UInt64) {
        guard fileScheme != nil else { return }
        switch phase {
        case .connecting, .waiting: timers.arm(now &+ Self.commandHeartbeatNanoseconds)
        case .redirecting, .body, .closing, .draining, .ended: break
        }
    }

    /// Whether a limit is broken now; if not, the board gets the next moment to look again.
    func expired(at now: UInt64) -> LocalEnd? {
        if let due = deadline {
            if now >= due { return .failed(.deadline(timeDetail("not over within", request.deadline))) }
            timers.arm(due)
        }
        armHeartbeat(at: now)
        switch phase {
        case .connecting, .ended:
            return nil
        case .waiting(let since):
            // While our own source has nothing to send, the peer owes nothing.
            if upload.isPaused { return nil }
            return peerTimerExpired(since, now, .failed(firstByteTimeout))
        case .redirecting(let since):
            return peerTimerExpired(since, now, .failed(firstByteTimeout))
        case .draining(let since):
            return expired(since, Self.restNanoseconds, now, .refused)
        case .body:
            return speedExpired(at: now)
        case .closing(let since):
            // All bytes are delivered, even if the server never confirms the end.
            return expired(since, Self.goodbyeNanoseconds, now, .delivered)
        }
    }

    private func expired(_ since: UInt64, _ limit: UInt64, _ now: UInt64, _ end: LocalEnd) -> LocalEnd? {
        if now >= since &+ limit { return end }
        timers.arm(since &+ limit)
        return nil
    }

    /// Whether libcurl may go on with what it does without coming back to the loop (CURLOPT_XFERINFOFUNCTION): it asks about
    /// once a second while it waits for a server of files.
    func mayGoOn() -> Bool {
        if case .ended = phase { return false }
        let end = inbox.hasEnd(for: id) ? .cancelled : expired(at: monotonicNanoseconds())
        guard let end else { return true }
        phase = .ended(end)
        return false
    }

    /// Extends the limits by a time for which the loop's own thread was held up: that is not the peer's fault.
    func excuse(_ nanoseconds: UInt64) {
        switch phase {
        case .waiting(let since): phase = .waiting(since: since &+ nanoseconds)
        case .redirecting(let since): phase = .redirecting(since: since &+ nanoseconds)
        case .draining(let since): phase = .draining(since: since &+ nanoseconds)
        case .closing(let since): phase = .closing(since: since &+ nanoseconds)
        case .body: speedWindow.due &+= nanoseconds
        case .connecting, .ended: break
        }
    }

    private var firstByteTimeout: TransferError {
        .firstByteTimeout(timeDetail("no response head within", firstBytePatience))
    }

    /// How long the peer may take to answer.
    private var firstBytePatience: Duration {
        let kept = hasOpenedConnection || openedSockets > 0 ? nil : request.keptFirstByteTimeout
        return kept ?? request.firstByteTimeout * (silencesBorne + 1)
    }

    private func peerTimerExpired(_ since: UInt64, _ now: UInt64, _ end: @autoclosure () -> LocalEnd) -> LocalEnd? {
        if now >= since &+ firstBytePatience.nanosecondsClamped {
            guard !handler.isTooSlow() else { return end() }
            silencesBorne += 1
        }
        armPeerTimer(since: since)
        return nil
    }

    private func speedExpired(at now: UInt64) -> LocalEnd? {
        guard let limit = lowSpeed else { return nil }
        // While the transfer takes no bytes, the peer cannot be too slow. A paced transfer starts the window anew
        // whenever it goes on.
        guard case .flowing = reception else {
            startSpeedWindow(at: now)
            return nil
        }
        if now >= speedWindow.due, speedWindow.isBelow(limit, at: now, bytes: bytesReceived) {
            guard handler.isTooSlow() else {
                startSpeedWindow(at: now)
                return nil
            }
            let text = "below \(limit.bytesPerSecond) bytes per second over"
            return .failed(.tooSlow(timeDetail(text, limit.over)))
        }
        timers.arm(speedWindow.due)
        return nil
    }

    private func timeDetail(_ text: String, _ duration: Duration?) -> TransferError.Detail {
        let time = duration.map { duration in
            let milliseconds = duration.nanosecondsClamped / 1_000_000
            return milliseconds < 1_000 ? " \(milliseconds) ms" : " \(Double(milliseconds / 100) / 10) s"
        }
        return TransferError.Detail(code: 0, message: text + (time?.replacing(".0 s", with: " s") ?? ""))
    }
}
