import CLibcurl
import Glibc

extension Transfer {
    /// Works out the outcome and lets nothing more reach the handler. Called once, before the handle is removed.
    func close(_ end: TransferEnd) -> TransferOutcome {
        // libcurl had no answer to the challenge, and nothing came after its head.
        if isChallenged, case .curl(CURLE_OK) = end { _ = receiveFinalHead() }
        let statistics = statistics()
        let outcome = outcome(of: end, statistics)
        phase = .ended(.cancelled)
        return outcome
    }

    private func outcome(of end: TransferEnd, _ statistics: TransferStatistics) -> TransferOutcome {
        switch (phase, end) {
        // What a callback decided is the cause; libcurl's code is only its echo.
        case (.ended(let cause), _): localOutcome(cause, statistics)
        // A refused response is refused, however the reading of its small body went.
        case (.draining, .curl): .refused(statistics)
        case (_, .local(let cause)): localOutcome(cause, statistics)
        case (.body, .curl(CURLE_OK)), (.closing, .curl(CURLE_OK)): completion(statistics)
        // No goodbye came, but nothing to the contrary either.
        case (.closing, .curl(CURLE_OPERATION_TIMEDOUT)): completion(statistics)
        case (.body, .curl(let code)), (.closing, .curl(let code)): .failed(error(for: code), statistics)
        case (.connecting, .curl(let code)), (.waiting, .curl(let code)), (.redirecting, .curl(let code)):
            outcomeWithoutHead(code, statistics)
        }
    }

    /// What libcurl takes for a proper end. It counts too; but where the head promised bytes, its word is not enough.
    private func completion(_ statistics: TransferStatistics) -> TransferOutcome {
        if let announcedBytes, bytesDelivered < announcedBytes, !cutsAtLimit {
            return .failed(truncation(of: announcedBytes), statistics)
        }
        return .completed(statistics, framing == .untilClose ? .connectionClosed : .framed)
    }

    private func outcomeWithoutHead(_ code: CURLcode, _ statistics: TransferStatistics) -> TransferOutcome {
        // A proxy that wants credentials refuses a tunnel for the same reason as any other request, and is shown alike (RFC 9110 §15.5.8).
        if code != CURLE_OK, easy.integer(CURLINFO_HTTP_CONNECTCODE) == 407 {
            framing = .none
            guard case .accept = show(status: 407, version: .http11) else { return .refused(statistics) }
            return .completed(statistics, .framed)
        }
        if let fileScheme { return fileOutcome(of: code, fileScheme, statistics) }
        guard code == CURLE_OK else { return .failed(error(for: code), statistics) }
        // libcurl takes an end of the connection within a head for the end of that.
        let cut = TransferError.Detail(code: 0, message: "the connection was closed within the response head")
        return .failed(.reset(cut), statistics)
    }

    private func localOutcome(_ end: LocalEnd, _ statistics: TransferStatistics) -> TransferOutcome {
        switch end {
        case .refused: .refused(statistics)
        case .stopped: .stopped(statistics)
        case .surplus: .completed(statistics, .surplus)
        case .delivered: .completed(statistics, .framed)
        case .cancelled: .cancelled(statistics)
        case .failed(let error): .failed(error, statistics)
        }
    }

    /// The kind of a failure. libcurl has no address left to try when all were refused, and says that it could not connect.
    func error(for code: CURLcode) -> TransferError {
        if openedSockets == 0 {
            if let socketError { return .noSocket(TransferError.Detail(code: 0, message: socketError)) }
            if let refusedAddress { return refusal(of: refusedAddress) }
        }
        // A line of the head that is longer than libcurl takes has the code of a lack of memory.
        if code == CURLE_OUT_OF_MEMORY, fileScheme == nil, case .waiting = phase {
            let text = "a line of the response head is over \(Self.maxHeadLineBytes) bytes"
            return .protocolViolation(TransferError.Detail(code: Int32(bitPattern: code.rawValue), message: text))
        }
        let message = redacted(unconnectedMessage(for: code) ?? easy.message(for: code))
        if fileScheme != nil { return fileError(code, message) }
        let error = TransferError(curl: code, message: message)
        if case .connect(let detail) = error, request.proxy != .direct, !isOfOrigin(message) { return .proxy(detail) }
        // Silence is how libcurl takes what a peer says that knows only HTTP/1.1.
        if case .reset(let detail) = error, request.httpVersion == .priorKnowledge, code == CURLE_GOT_NOTHING {
            return .streamReset(detail)
        }
        if case .unsupportedScheme(let detail) = error, easy.integer(CURLINFO_REDIRECT_COUNT) > 0 {
            return .unsupportedScheme(Self.unfollowed(detail))
        }
        return error
    }

    /// What libcurl says of the scheme that a redirect leads to, which it names where it knows that one.
    private static func unfollowed(_ detail: TransferError.Detail) -> TransferError.Detail {
        let scheme = detail.message.firstMatch(of: /Protocol "([^"]+)"/).map { ": \($0.output.1)" } ?? ""
        return TransferError.Detail(
            code: detail.code, message: "a redirect leads to a scheme that is not followed\(scheme)")
    }

    /// Whether the place is the origin's to which, as libcurl says, no connection came about; where a proxy is asked, the other place is the proxy's.
    private func isOfOrigin(_ message: String) -> Bool {
        guard let place = message.firstMatch(of: /Failed to connect to (\S+) port (\d+)/)?.output,
            let origin = URLOrigin(effectiveURL)
        else { return true }
        return origin.port == place.2 && [String(place.1), "[\(place.1)]"].contains(origin.host)
    }

    /// What libcurl says of a connection that did not come about, with what the system says in the place of "Could not connect to server".
    private func unconnectedMessage(for code: CURLcode) -> String? {
        guard code == CURLE_COULDNT_CONNECT else { return nil }
        let number = Int32(truncatingIfNeeded: easy.integer(CURLINFO_OS_ERRNO))
        let message = easy.message(for: code)
        guard number != 0, message.hasSuffix(" connect to server"),
            let colon = message.lastIndex(of: ":")
        else { return nil }
        return message[...colon] + " " + String(cString: strerror(number))
    }

    /// The URL asked for last, without credentials.
    var effectiveURL: String { URLCredentials.removed(from: easy.string(CURLINFO_EFFECTIVE_URL)) }

    /// A message of libcurl without anything secret of the request: it quotes a proxy's URL, for example.
    private func redacted(_ message: String) -> String {
        let credentials = [request.credentials, URLCredentials.text(of: request.url), proxyCredentials]
        let passwords = credentials.map { $0?.split(separator: ":", maxSplits: 1).dropFirst().first.map(String.init) }
        var message = message
        for secret in credentials + passwords + [request.cookies] {
            if let secret, !secret.isEmpty { message = message.replacing(secret, with: "***") }
        }
        return message
    }

    private var proxyCredentials: String? {
        switch request.proxy {
        case .direct, .environment: nil
        case .url(let url): URLCredentials.text(of: url)
        }
    }

    private func statistics() -> TransferStatistics {
        let time = { (info: CURLINFO) in Duration.microseconds(self.easy.offset(info)) }
        var statistics = TransferStatistics()
        statistics.bytesDelivered = bytesDelivered
        statistics.bytesUploaded = easy.offset(CURLINFO_SIZE_UPLOAD_T)
        statistics.nameLookupTime = time(CURLINFO_NAMELOOKUP_TIME_T)
        statistics.connectTime = time(CURLINFO_CONNECT_TIME_T)
        statistics.tlsTime = time(CURLINFO_APPCONNECT_TIME_T)
        statistics.startTransferTime = time(CURLINFO_STARTTRANSFER_TIME_T)
        statistics.totalTime = time(CURLINFO_TOTAL_TIME_T)
        let peer = easy.string(CURLINFO_PRIMARY_IP)
        statistics.remoteAddress = peer.isEmpty ? triedAddress : peer
        // libcurl would count the data connections of ftp too.
        let opened = fileScheme == nil ? easy.integer(CURLINFO_NUM_CONNECTS) > 0 : hasOpenedConnection
        statistics.connectionReused = !peer.isEmpty && !opened
        statistics.followsSurplus = followsSurplus
        statistics.redirectCount = easy.integer(CURLINFO_REDIRECT_COUNT)
        statistics.effectiveURL = effectiveURL
        return statistics
    }
}
