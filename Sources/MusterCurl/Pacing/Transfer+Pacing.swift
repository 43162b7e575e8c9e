import CLibcurl

// Keeping to the budgets. A piece that the budgets do not cover is not taken: libcurl holds it back and reads no more,
// and the flow control of the connection slows the peer down until the loop finds the budgets ready.
extension Transfer {
    /// Whether a piece may be taken now; if not, the transfer waits in the loop's queue.
    func mayTakePiece() -> Bool {
        guard case .must(let wait) = pace() else { return true }
        reception = .paced
        pacing.add(id, wait: wait, at: monotonicNanoseconds())
        return false
    }

    /// Books a piece that was taken.
    func bookPiece(_ bytes: Int64) {
        for budget in request.budgets { budget.take(bytes) }
    }

    /// Goes on if the budgets allow it. Returns how long to wait otherwise (`nil` for an unknown time), or 0 when the
    /// transfer does not wait any more, and libcurl's code, which is not OK if the transfer has to end now.
    func goOnWithinBudgets() -> (wait: UInt64?, code: CURLcode) {
        guard case .paced = reception else { return (0, CURLE_OK) }
        if case .must(let wait) = pace() { return (wait, CURLE_OK) }
        reception = .flowing
        // The peer was ready with more: our own pauses do not count against it.
        if case .body = phase { startSpeedWindow(at: monotonicNanoseconds()) }
        return (0, easy.pause(upload.isPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT))
    }

    private enum Pace {
        case may
        /// For `wait` nanoseconds, `nil` for an unknown time.
        case must(wait: UInt64?)
    }

    /// Asks all budgets; the strictest decides. Only that budget counts as short: the transfer could not have used what
    /// the others have left.
    private func pace() -> Pace {
        var longest: UInt64 = 0
        var strictest: ByteBudget?
        for budget in request.budgets {
            guard let wait = budget.wait() else {
                budget.noteShortage()
                return .must(wait: nil)
            }
            if wait > longest { (longest, strictest) = (wait, budget) }
        }
        guard let strictest else { return .may }
        strictest.noteShortage()
        return .must(wait: longest)
    }
}
