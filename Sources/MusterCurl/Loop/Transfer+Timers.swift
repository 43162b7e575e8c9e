// The time limits that libcurl does not keep, or keeps in another sense. Times are monotonic nanoseconds.
extension Transfer {
    /// The peer's turn to speak begins now.
    func waitForPeer() {
        let now = monotonicNanoseconds()
        phase = .waiting(since: now)
        armPeerTimer(since: now)
    }

    func armPeerTimer(since: UInt64) {
        timers.arm(since &+ request.firstByteTimeout.nanosecondsClamped)
    }

    func armDeadline() {
        if let due = deadline { timers.arm(due) }
    }

    func startSpeedWindow(at now: UInt64) {
        speedWindow = (now, bytesReceived)
        if let limit = request.lowSpeed { timers.arm(now &+ limit.over.nanosecondsClamped) }
    }

    private var deadline: UInt64? {
        request.deadline.map { startedAt &+ $0.nanosecondsClamped }
    }

    /// Whether a limit is broken now; if not, the next moment to look again is left with the board.
    func expired(at now: UInt64) -> LocalEnd? {
        if let due = deadline {
            if now >= due { return .failed(.deadline(timeDetail("not over within", request.deadline))) }
            timers.arm(due)
        }
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
            return peerTimerExpired(since, now, .refused)
        case .body:
            return speedExpired(at: now)
        }
    }

    private var firstByteTimeout: TransferError {
        .firstByteTimeout(timeDetail("no response head within", request.firstByteTimeout))
    }

    private func peerTimerExpired(_ since: UInt64, _ now: UInt64, _ end: LocalEnd) -> LocalEnd? {
        if now >= since &+ request.firstByteTimeout.nanosecondsClamped { return end }
        armPeerTimer(since: since)
        return nil
    }

    private func speedExpired(at now: UInt64) -> LocalEnd? {
        guard let limit = request.lowSpeed else { return nil }
        // Bytes that we do not take cannot be late.
        guard case .flowing = reception else {
            startSpeedWindow(at: now)
            return nil
        }
        let span = limit.over.nanosecondsClamped
        if now < speedWindow.start &+ span {
            timers.arm(speedWindow.start &+ span)
            return nil
        }
        let (product, overflow) = max(0, limit.bytesPerSecond).multipliedReportingOverflow(by: Int64(span / 1_000_000))
        let least = overflow ? Int64.max : product / 1000
        if bytesReceived - speedWindow.bytes < least {
            let message = "below \(limit.bytesPerSecond) bytes per second over \(limit.over)"
            return .failed(.tooSlow(TransferError.Detail(code: 0, message: message)))
        }
        startSpeedWindow(at: now)
        return nil
    }

    private func timeDetail(_ text: String, _ duration: Duration?) -> TransferError.Detail {
        TransferError.Detail(code: 0, message: duration.map { "\(text) \($0)" } ?? text)
    }
}
