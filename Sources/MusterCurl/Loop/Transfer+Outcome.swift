import CLibcurl
import Glibc

extension Transfer {
    /// Works out the outcome and lets nothing more reach the handler. Called once, before the handle is removed.
    func close(_ end: TransferEnd) -> TransferOutcome {
        // libcurl could not answer the challenge, and its response has no body: its head is the final one.
        if isChallenged, case .curl(CURLE_OK) = end { _ = receiveFinalHead() }
        let statistics = statistics()
        let outcome = outcome(of: end, statistics)
        phase = .ended(.cancelled)
        return outcome
    }

    private func outcome(of end: TransferEnd, _ statistics: TransferStatistics) -> TransferOutcome {
        switch (phase, end) {
        // What a callback decided is the cause; libcurl's code only follows from it.
        case (.ended(let cause), _): localOutcome(cause, statistics)
        // A refused response stays refused, even if reading its small body failed.
        case (.draining, .curl): .refused(statistics)
        case (_, .local(let cause)): localOutcome(cause, statistics)
        case (.body, .curl(CURLE_OK)), (.closing, .curl(CURLE_OK)): completion(statistics)
        // All bytes are delivered; the server only did not confirm the end in time.
        case (.closing, .curl(CURLE_OPERATION_TIMEDOUT)): completion(statistics)
        case (.body, .curl(let code)), (.closing, .curl(let code)): .failed(error(for: code), statistics)
        case (.connecting, .curl(let code)), (.waiting, .curl(let code)), (.redirecting, .curl(let code)):
            outcomeWithoutHead(code, statistics)
        }
    }

    /// The outcome when libcurl reports success. Where the head of a file announced a length, libcurl's report is checked
    /// against it.
    private func completion(_ statistics: TransferStatistics) -> TransferOutcome {
        if let announcedBytes, bytesDelivered < announcedBytes, !cutsAtLimit {
            return .failed(truncation(of: announcedBytes), statistics)
        }
        return .completed(statistics, framing == .untilClose ? .connectionClosed : .framed)
    }

    private func outcomeWithoutHead(_ code: CURLcode, _ statistics: TransferStatistics) -> TransferOutcome {
        // A proxy that wants credentials refuses a tunnel for the same reason as any other request, so the handler is
        // shown a 407 too (RFC 9110 §15.5.8).
        if code != CURLE_OK, easy.integer(CURLINFO_HTTP_CONNECTCODE) == 407 {
            framing = .none
            guard case .accept = show(status: 407, version: .http11) else { return .refused(statistics) }
            return .completed(statistics, .framed)
        }
        if let fileScheme { return fileOutcome(of: code, fileScheme, statistics) }
        guard code == CURLE_OK else { return .failed(error(for: code), statistics) }
        // libcurl takes the end of the connection within a head for the end of the head.
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

    /// The error for a code of libcurl. When all addresses were refused, libcurl has none left to try, and reports that
    /// it could not connect.
    func error(for code: CURLcode) -> TransferError {
        if openedSockets == 0 {
            if let socketError { return .noSocket(TransferError.Detail(code: 0, message: socketError)) }
            if let refusedAddress { return refusal(of: refusedAddress) }
        }
        // libcurl reports a header line that is longer than its limit as a lack of memory.
        if code == CURLE_OUT_OF_MEMORY, fileScheme == nil, case .waiting = phase {
            let text = "a line of the response head is over \(Self.maxHeadLineBytes) bytes"
            return .protocolViolation(TransferError.Detail(code: Int32(bitPattern: code.rawValue), message: text))
        }
        let message = redacted(unconnectedMessage(for: code) ?? easy.message(for: code))
        if fileScheme != nil { return fileError(code, message) }
        let error = TransferError(curl: code, message: message)
        if case .connect(let detail) = error, request.proxy != .direct, !isOfOrigin(message) { return .proxy(detail) }
        // libcurl reports what a peer that knows only HTTP/1.1 says as an empty response.
        if case .reset(let detail) = error, request.httpVersion == .priorKnowledge, code == CURLE_GOT_NOTHING {
            return .streamReset(detail)
        }
        if case .unsupportedScheme(let detail) = error, easy.integer(CURLINFO_REDIRECT_COUNT) > 0 {
            return .unsupportedScheme(Self.unfollowed(detail))
        }
        return error
    }

    /// The detail for a redirect to a scheme that is not followed; it names the scheme if libcurl does.
    private static func unfollowed(_ detail: TransferError.Detail) -> TransferError.Detail {
        let scheme = detail.message.firstMatch(of: /Protocol "([^"]+)"/).map { ": \($0.output.1)" } ?? ""
        return TransferError.Detail(
            code: detail.code, message: "a redirect leads to a scheme that is not followed\(scheme)")
    }

    /// Whether libcurl's message about a failed connection names the origin; with a proxy it may name the proxy instead.
    private func isOfOrigin(_ message: String) -> Bool {
        guard let place = message.firstMatch(of: /Failed to connect to (\S+) port (\d+)/)?.output,
            let origin = URLOrigin(effectiveURL)
        else { return true }
        return origin.port == place.2 && [String(place.1), "[\(place.1)]"].contains(origin.host)
    }

    /// libcurl's message about a failed connection, with the system's error text in place of "Could not connect to server".
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
