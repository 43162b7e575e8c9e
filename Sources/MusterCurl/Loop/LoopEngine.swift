import CLibcurl

/// The earliest moment at which a timer of any transfer may run out, in monotonic nanoseconds. Transfers lower it when
/// they arm a timer; the loop looks at all transfers only once it has passed.
final class TimerBoard {
    private(set) var earliest = UInt64.max

    func arm(_ deadline: UInt64) {
        if deadline < earliest { earliest = deadline }
    }

    func clear() {
        earliest = .max
    }
}

/// What the loop's thread runs, and what belongs to that thread alone.
final class LoopEngine {
    /// The longest sleep while no timer of ours is armed. libcurl's own timers shorten it, and `wake` ends it.
    private static let longestSleepMilliseconds: UInt64 = 60_000
    /// A pass through libcurl that took longer than this was held up.
    private static let longestPassNanoseconds: UInt64 = 500_000_000

    private let multi: MultiHandle
    private let inbox: LoopInbox
    private let timers = TimerBoard()
    private let pacing = PacingQueue()
    private var active: [TransferID: Transfer] = [:]
    private let sessions = SharedSessions()
    private var stalls = StallWatch()
    private var idle: IdleWatch

    init(multi: MultiHandle, inbox: LoopInbox, idlePatience: Duration) {
        self.multi = multi
        self.inbox = inbox
        idle = IdleWatch(patience: idlePatience)
    }

    func run() {
        while true {
            let batch = inbox.take()
            for command in batch.commands { apply(command) }
            if batch.isLast { break }
            perform()
            finishCompleted()
            expireTimers()
            watchStalls()
            for request in idle.surplus(at: monotonicNanoseconds()) { closeIdle(like: request) }
            goOnWithinBudgets()
            multi.poll(milliseconds: sleepMilliseconds())
        }
        for transfer in Array(active.values) { finish(transfer, as: .local(.cancelled)) }
    }

    private func perform() {
        let start = monotonicNanoseconds()
        multi.perform()
        let duration = monotonicNanoseconds() &- start
        if duration > Self.longestPassNanoseconds {
            for transfer in active.values { transfer.excuse(duration) }
        }
    }

    private func apply(_ command: LoopCommand) {
        switch command {
        case .start(let id, let request, let handler): start(id, request, handler)
        case .closeIdle(let request): closeIdle(like: request)
        case .cancel(let id):
            if let transfer = active[id] { finish(transfer, as: .local(.cancelled)) }
        case .resume(let id):
            guard let transfer = active[id] else { return }
            let code = transfer.resume()
            // libcurl reports here what the callbacks answered to the data it had held back, but does not end the
            // transfer by itself.
            if code != CURLE_OK { finish(transfer, as: .curl(code)) }
        }
    }

    private func start(
        _ id: TransferID, _ request: TransferRequest, _ handler: any TransferHandler, closesIdle: Bool = false,
        followsSurplus: Bool = false
    ) {
        guard let easy = sessions.flatMap({ EasyHandle($0) }) else {
            let detail = TransferError.Detail(
                code: Int32(bitPattern: CURLE_OUT_OF_MEMORY.rawValue),
                message: "no memory for a transfer"
            )
            handler.finished(.failed(.other(detail), TransferStatistics()))
            return
        }
        let transfer = Transfer(
            id: id,
            request: request,
            handler: handler,
            easy: easy,
            timers: timers,
            pacing: pacing,
            inbox: inbox,
            sockets: multi.sockets,
            closesIdle: closesIdle,
            followsSurplus: followsSurplus
        )
        if let problem = transfer.configure() {
            handler.finished(.failed(problem, TransferStatistics()))
            return
        }
        // This reference is what libcurl's callbacks use; it is given back only after the handle left the multi handle.
        easy.setPointer(CURLOPT_PRIVATE, Unmanaged.passRetained(transfer).toOpaque())
        active[id] = transfer
        if !closesIdle {
            stalls.arm(transfer.startedAt)
            if transfer.fileScheme == nil { idle.begin(request, at: transfer.startedAt) }
        }
        let code = multi.add(easy)
        if code != CURLM_OK { finish(transfer, as: .curl(CURLE_FAILED_INIT)) }
    }

    private func finishCompleted() {
        while let (user, result) = multi.nextCompletion() {
            finish(Unmanaged<Transfer>.fromOpaque(user).takeUnretainedValue(), as: .curl(result))
        }
    }

    private func expireTimers() {
        guard timers.earliest != .max else { return }
        let now = monotonicNanoseconds()
        guard now >= timers.earliest else { return }
        timers.clear()
        var expired: [(Transfer, LocalEnd)] = []
        for transfer in active.values {
            if let end = transfer.expired(at: now) { expired.append((transfer, end)) }
        }
        for (transfer, end) in expired { finish(transfer, as: .local(end)) }
    }

    /// Resumes the transfers whose budgets allow bytes again.
    private func goOnWithinBudgets() {
        guard pacing.earliest != .max else { return }
        pacing.visit(at: monotonicNanoseconds()) { id in
            guard let transfer = active[id] else { return 0 }
            let (wait, code) = transfer.goOnWithinBudgets()
            if code != CURLE_OK { finish(transfer, as: .curl(code)) }
            return wait
        }
    }

    private func sleepMilliseconds() -> Int32 {
        let earliest = min(timers.earliest, pacing.earliest, stalls.earliest, idle.earliest)
        guard earliest != .max else { return Int32(Self.longestSleepMilliseconds) }
        let now = monotonicNanoseconds()
        guard earliest > now else { return 0 }
        // Rounded up, so that the thread does not wake a moment too soon and spin.
        return Int32(min((earliest - now) / 1_000_000 + 1, Self.longestSleepMilliseconds))
    }

    /// Takes the transfer out of libcurl first and calls the handler last, so that nothing can follow `finished`.
    private func finish(_ transfer: Transfer, as end: TransferEnd) {
        guard active.removeValue(forKey: transfer.id) != nil else { return }
        if let reason = transfer.unfitness, case .curl = end {
            askOnNewConnection(transfer, since: reason)
            return
        }
        let outcome = transfer.close(end)
        multi.remove(transfer.easy)
        transfer.connection = nil
        Unmanaged.passUnretained(transfer).release()
        transfer.handler.finished(outcome)
        if !transfer.closesIdle, transfer.fileScheme == nil { idle.end(transfer.request) }
        if transfer.closesIdle {
            stalls.closed(transfer.request)
            // It has closed an idle connection: there may be another. One that streams of HTTP/2 use stays open, and libcurl would choose it again and again.
            if let connection = transfer.closedConnection, !multi.sockets.isOpen(connection) {
                closeIdle(like: transfer.request)
            }
        } else if let waiting = waiting(like: transfer.request) {
            // The connection of the finished transfer is idle now.
            closeIdle(like: waiting)
        }
    }

    /// A request that has waited for too long at the origin of a finished request; nil if there is none.
    private func waiting(like request: TransferRequest) -> TransferRequest? {
        for id in stalls.waiting(like: request) {
            if let transfer = active[id], transfer.unansweredSince != nil { return transfer.request }
        }
        return nil
    }

    /// Repeats the request on a new connection; the connection that libcurl had chosen is closed.
    private func askOnNewConnection(_ transfer: Transfer, since reason: UnfitConnection) {
        multi.remove(transfer.easy)
        transfer.connection = nil
        idle.end(transfer.request)
        var request = transfer.request
        request.isAlone = true
        start(transfer.id, request, transfer.handler, followsSurplus: reason == .surplus)
        Unmanaged.passUnretained(transfer).release()
    }

    /// Closes an idle connection: a transfer takes it from libcurl's pool, and ends without sending its request. libcurl
    /// has no other way to close an idle connection.
    private func closeIdle(like request: TransferRequest) {
        guard stalls.closes(request) else { return }
        start(inbox.newID(), request, IdleCloser(), closesIdle: true)
    }

    private func watchStalls() {
        guard stalls.isDue else { return }
        for request in stalls.look(at: active.values) { closeIdle(like: request) }
    }
}
