import CLibcurl

/// Why the loop itself, not libcurl, ends a transfer.
enum LocalEnd {
    /// The handler refused the head.
    case refused
    /// The handler stopped the body.
    case stopped
    /// The limit is reached, and the peer has more.
    case surplus
    /// Everything that was asked for is delivered, although the file server has more.
    case delivered
    /// Cancelled, or the loop ends.
    case cancelled
    /// The transfer broke a limit or failed a check of our own.
    case failed(TransferError)
}

/// What ended a transfer first.
enum TransferEnd {
    case curl(CURLcode)
    case local(LocalEnd)
}

/// One running transfer: the target of libcurl's callbacks. It belongs to the loop's thread.
final class Transfer {
    enum Phase {
        /// No request was sent: connecting, or waiting for a connection. Exits: `waiting`, `ended`.
        case connecting
        /// The request is going out or is sent; the head is not complete. The time is when the peer's turn began, or
        /// when an upload last made progress. Exits: `redirecting`, `body`, `draining`, `ended`.
        case waiting(since: UInt64)
        /// The head of a redirect, or of a challenge, is complete; libcurl skips its body and asks anew. A challenge that it can't answer
        /// turns out to be the final response. Exits: `waiting`, `body`, `draining`, `ended`.
        case redirecting(since: UInt64)
        /// The final head was accepted; `remaining` more bytes may be delivered. Exits: `closing`, `ended`.
        case body(remaining: Int64)
        /// Everything that a file server announced is delivered; the server has yet to confirm the end. Exits: `ended`.
        case closing(since: UInt64)
        /// The head was refused, but the body is so small that reading it is cheaper than a new connection.
        /// Exits: `ended`.
        case draining(since: UInt64)
        /// Nothing reaches the handler any more but `finished`.
        case ended(LocalEnd)
    }

    /// What happens to the body bytes that libcurl has.
    enum Reception {
        /// They go to the handler.
        case flowing
        /// The handler paused, but libcurl has not delivered more yet.
        case pausing
        /// The handler paused, and libcurl holds a piece back and reads no more.
        case held
        /// A budget is used up; libcurl holds a piece back and reads no more until the loop goes on with it.
        case paced
    }

    /// Bodies of refused responses up to this size are read to keep the connection.
    static let maxDrainedBytes: Int64 = 16 * 1024
    /// libcurl's own limit (CURL_MAX_HTTP_HEADER).
    static let maxHeadLineBytes = 100 * 1024
    /// Beyond any limit that a request can name.
    static let unlimited = Int64.max

    let id: TransferID
    let request: TransferRequest
    let handler: any TransferHandler
    let easy: EasyHandle
    let timers: TimerBoard
    let pacing: PacingQueue
    let inbox: LoopInbox
    let sockets: OpenSockets
    let startedAt: UInt64
    /// Whether it only takes an idle connection, to close it, and opens none.
    let closesIdle: Bool
    /// The connection that it was given to close.
    var closedConnection: OpenSockets.Connection?
    /// The connection on which its request went out.
    var connection: OpenSockets.Connection? {
        didSet { if let oldValue { sockets.end(id, on: oldValue) } }
    }
    /// Whether the request was first meant for a reused connection on which the peer had sent surplus bytes (row 28).
    let followsSurplus: Bool
    /// Why the connection that libcurl chose is not used: nothing was sent, and the request is repeated on a new one.
    var unfitness: UnfitConnection?

    /// Ending a transfer early closes its connection: libcurl 7.88 does not tell the peer that a stream of HTTP/2 was
    /// given up, so the peer would go on with the stream, and count it against a limit of streams. A connection that
    /// other transfers use stays open.
    var phase = Phase.connecting {
        didSet {
            if case .ended = phase, fileScheme == nil { easy.set(CURLOPT_FORBID_REUSE, true) }
        }
    }
    var reception = Reception.flowing
    var collector: HeadCollector
    var framing = BodyFraming.none
    var bytesDelivered: Int64 = 0
    /// Body bytes that came, delivered or not; the measure of speed.
    var bytesReceived: Int64 = 0
    /// Whether the peer announced more than the limit, so that reaching the limit is the end.
    var cutsAtLimit = false
    /// What the limit means when the peer has more.
    var limitEnd = LocalEnd.surplus
    /// The scheme of a file server; nil for http and https.
    let fileScheme: FileScheme?
    var ftpReplies = FTPReplies()
    /// How many bytes the head of a file announced.
    var announcedBytes: Int64?
    /// How many challenges libcurl was left to answer.
    var challenges = 0
    /// Whether the last hop was over TLS; nil before the first redirect.
    var lastHopWasTLS: Bool?
    /// The least speed that the body may have; nil for any.
    var lowSpeed: LowSpeedLimit?
    var speedWindow = SpeedWindow()
    /// How often the time for an answer ran out and the handler let the transfer go on.
    var silencesBorne = 0
    var upload: Upload
    /// For the current hop: the last address that was refused, and the number of sockets that were opened.
    var refusedAddress: String?
    var openedSockets = 0
    /// Why no socket could be opened for the current hop.
    var socketError: String?
    /// Whether a connection was opened for the transfer, data connections apart.
    var hasOpenedConnection = false
    /// The address that was last connected to, or tried.
    var triedAddress = ""

    init(
        id: TransferID,
        request: TransferRequest,
        handler: any TransferHandler,
        easy: EasyHandle,
        timers: TimerBoard,
        pacing: PacingQueue,
        inbox: LoopInbox,
        sockets: OpenSockets,
        closesIdle: Bool = false,
        followsSurplus: Bool = false
    ) {
        self.id = id
        self.sockets = sockets
        self.closesIdle = closesIdle
        self.followsSurplus = followsSurplus
        self.request = request
        self.handler = handler
        self.easy = easy
        self.timers = timers
        self.pacing = pacing
        self.inbox = inbox
        self.startedAt = monotonicNanoseconds()
        self.fileScheme = FileScheme(url: request.url)
        self.lowSpeed = request.lowSpeed
        self.upload = Upload(request.body)
        self.collector = HeadCollector(followsRedirects: request.maxRedirects > 0, limitBytes: request.maxHeadBytes)
    }

    /// Ends the transfer from within a callback; libcurl then reports an error, which `close` ignores.
    func abort(_ end: LocalEnd) -> Int {
        phase = .ended(end)
        return Int(CURL_WRITEFUNC_ERROR)
    }

    func violation(_ message: String) -> LocalEnd {
        .failed(.protocolViolation(TransferError.Detail(code: 0, message: message)))
    }
}

// The response.
extension Transfer {
    /// Takes one header line (CURLOPT_HEADERFUNCTION).
    func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        if fileScheme != nil { return receiveReply(line) }
        switch phase {
        case .connecting, .waiting, .redirecting: break
        // What comes after the final head are trailers, which are no part of it (RFC 9110 §6.5).
        case .body, .closing, .draining: return line.count
        case .ended: return Int(CURL_WRITEFUNC_ERROR)
        }
        switch collector.take(line) {
        case .more:
            return line.count
        case .informational:
            // During an upload a 1xx shows that the peer is listening. Otherwise a 1xx does not extend the time for the answer.
            if !upload.isNone { waitForPeer() }
            return line.count
        case .redirect:
            refusedAddress = nil
            openedSockets = 0
            return follow() ? line.count : Int(CURL_WRITEFUNC_ERROR)
        case .violation(let message):
            return abort(violation(message))
        case .final where isAnswerable(collector):
            challenges += 1
            phase = .redirecting(since: monotonicNanoseconds())
            return line.count
        case .final:
            return receiveFinalHead() ? line.count : Int(CURL_WRITEFUNC_ERROR)
        }
    }

    /// Follows the redirect; false if the transfer is to end.
    private func follow() -> Bool {
        let targets = redirectTargets
        if let redirectAllowed = request.redirectAllowed, !targets.allSatisfy({ $0.map(redirectAllowed) == true }) {
            let detail = TransferError.Detail(code: 0, message: "where the redirect leads may not be asked")
            phase = .ended(.failed(.refusedRedirect(detail)))
            return false
        }
        keepNetrcOffCleartext(targets)
        phase = .redirecting(since: monotonicNanoseconds())
        return true
    }

    /// Shows the head to the handler; false if the transfer is to end.
    func receiveFinalHead() -> Bool {
        noteVersion()
        framing = collector.framing(isHead: request.method == "HEAD")
        switch show(status: collector.status, version: collector.version, headers: collector.headers) {
        case .accept(let limit, let lowSpeed):
            if let lowSpeed { self.lowSpeed = lowSpeed }
            accept(limit)
        case .refuse:
            refuse()
        }
        if case .ended = phase { return false }
        // While the upload's source is paused, libcurl does not notice that the response has ended the upload.
        if upload.isPaused { inbox.post(.resume(id)) }
        return true
    }

    /// Shows a head to the handler, whose body is framed as `framing` says.
    func show(status: Int, version: ResponseHead.Version, headers: HeaderList = []) -> HeadVerdict {
        handler.head(
            ResponseHead(
                status: status,
                version: version,
                effectiveURL: effectiveURL,
                headers: headers,
                remoteAddress: easy.string(CURLINFO_PRIMARY_IP),
                remotePort: easy.integer(CURLINFO_PRIMARY_PORT),
                redirectCount: easy.integer(CURLINFO_REDIRECT_COUNT),
                bodyFraming: framing
            )
        )
    }

    private func accept(_ limit: Int64?) {
        var remaining = limit.map { max(0, $0) } ?? Self.unlimited
        if case .contentLength(let length) = framing {
            cutsAtLimit = length > remaining || collector.endsBeforeConnection
            if length <= remaining, cutsAtLimit { (remaining, limitEnd) = (length, .delivered) }
        }
        if cutsAtLimit && remaining == 0 {
            phase = .ended(limitEnd)
            return
        }
        phase = .body(remaining: remaining)
        startSpeedWindow(at: monotonicNanoseconds())
    }

    private func refuse() {
        let isSmall =
            switch framing {
            case .none: true
            case .contentLength(let length): length <= Self.maxDrainedBytes
            case .chunked, .untilClose: false
            }
        // With an upload under way the peer may read for long before its answer ends.
        guard isSmall, upload.isNone else {
            phase = .ended(.refused)
            return
        }
        let now = monotonicNanoseconds()
        phase = .draining(since: now)
        timers.arm(now &+ Self.restNanoseconds)
    }

    /// Takes a piece of the body (CURLOPT_WRITEFUNCTION). No allocation and no lock here: this is where all bytes pass.
    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !bytes.isEmpty else { return 0 }
        switch phase {
        case .body(let remaining):
            switch reception {
            case .flowing: break
            case .pausing, .held:
                reception = .held
                return Int(CURL_WRITEFUNC_PAUSE)
            case .paced: return Int(CURL_WRITEFUNC_PAUSE)
            }
            guard request.budgets.isEmpty || mayTakePiece() else { return Int(CURL_WRITEFUNC_PAUSE) }
            return deliver(bytes, remaining)
        case .closing:
            return abort(.delivered)
        case .draining:
            bytesReceived += Int64(bytes.count)
            return bytesReceived <= Self.maxDrainedBytes ? bytes.count : abort(.refused)
        case .redirecting where isChallenged:
            return receiveFinalHead() ? receiveBody(bytes) : Int(CURL_WRITEFUNC_ERROR)
        case .connecting, .waiting, .redirecting:
            guard let fileScheme else { return abort(violation("body bytes came before a final response head")) }
            return receiveFileHead(fileScheme) ? receiveBody(bytes) : Int(CURL_WRITEFUNC_ERROR)
        case .ended:
            return Int(CURL_WRITEFUNC_ERROR)
        }
    }

    private func deliver(_ bytes: UnsafeRawBufferPointer, _ remaining: Int64) -> Int {
        let count = min(Int64(bytes.count), remaining)
        bytesReceived += Int64(bytes.count)
        if count > 0 {
            bytesDelivered += count
            if !request.budgets.isEmpty { bookPiece(count) }
            switch handler.body(UnsafeRawBufferPointer(rebasing: bytes[..<Int(count)])) {
            case .proceed: break
            case .pause: reception = .pausing
            case .stop: return abort(.stopped)
            }
        }
        let left = remaining == Self.unlimited ? remaining : remaining - count
        if count < bytes.count || (cutsAtLimit && left == 0) { return abort(limitEnd) }
        phase = left == 0 && fileScheme != nil ? .closing(since: monotonicNanoseconds()) : .body(remaining: left)
        return bytes.count
    }

    /// Goes on after a pause; the code is not OK if the transfer has to end now.
    func resume() -> CURLcode {
        var isPausedInCurl = upload.isPaused
        var stays = CURLPAUSE_CONT
        switch reception {
        case .flowing: break
        case .pausing: reception = .flowing
        case .held:
            reception = .flowing
            isPausedInCurl = true
        // The budgets alone say when this goes on.
        case .paced: stays = CURLPAUSE_RECV
        }
        upload.isPaused = false
        let now = monotonicNanoseconds()
        switch phase {
        case .waiting: waitForPeer()
        case .body: startSpeedWindow(at: now)
        case .connecting, .redirecting, .closing, .draining, .ended: break
        }
        return isPausedInCurl ? easy.pause(stays) : CURLE_OK
    }
}
