import CLibcurl

extension Transfer {
    /// Works out the outcome and lets nothing more reach the handler. Called once, before the handle is removed.
    func close(_ end: TransferEnd) -> TransferOutcome {
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
        case (.body, .curl(CURLE_OK)): .completed(statistics, framing == .untilClose ? .connectionClosed : .framed)
        case (_, .curl(CURLE_OK)):
            .failed(.protocolViolation(TransferError.Detail(code: 0, message: "no final response came")), statistics)
        case (_, .curl(let code)): .failed(error(for: code), statistics)
        }
    }

    private func localOutcome(_ end: LocalEnd, _ statistics: TransferStatistics) -> TransferOutcome {
        switch end {
        case .refused: .refused(statistics)
        case .stopped: .stopped(statistics)
        case .surplus: .completed(statistics, .surplus)
        case .cancelled: .cancelled(statistics)
        case .failed(let error): .failed(error, statistics)
        }
    }

    private func error(for code: CURLcode) -> TransferError {
        if code == CURLE_COULDNT_CONNECT, let refusedAddress, openedSockets == 0 { return refusal(of: refusedAddress) }
        return TransferError(curl: code, message: easy.message(for: code))
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
        statistics.remoteAddress = easy.string(CURLINFO_PRIMARY_IP)
        statistics.connectionReused = !statistics.remoteAddress.isEmpty && easy.integer(CURLINFO_NUM_CONNECTS) == 0
        statistics.redirectCount = easy.integer(CURLINFO_REDIRECT_COUNT)
        statistics.effectiveURL = easy.string(CURLINFO_EFFECTIVE_URL)
        return statistics
    }
}
