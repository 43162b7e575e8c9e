import CLibcurl

// Transfers by ftp, ftps and sftp (range contract, row 37). These protocols have no head: the transfer makes a head
// before the first byte of the body, or at the end if there is no body.
extension Transfer {
    /// Takes a line of an FTP server (CURLOPT_HEADERFUNCTION).
    func receiveReply(_ line: UnsafeRawBufferPointer) -> Int {
        if case .ended = phase { return Int(CURL_WRITEFUNC_ERROR) }
        ftpReplies.take(line)
        return line.count
    }

    /// Shows the head to the handler when the first bytes arrive; false if the transfer is to end.
    func receiveFileHead(_ scheme: FileScheme) -> Bool {
        if ftpReplies.statesNegativeSize, !request.readsToEnd {
            phase = .ended(.failed(Self.negativeSize))
            return false
        }
        let rest = easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        let facts = FileHead.Facts(size: sizeOfBegunFile(scheme, rest: rest), modificationTime: modificationTime)
        let head = request.readsToEnd ? .rest : FileHead.file(facts, range: request.range)
        switch show(head, scheme) {
        case .refuse:
            phase = .ended(.refused)
        case .accept where head.isWithoutBody:
            phase = .ended(.failed(Self.noPart))
        case .accept(let limit, let lowSpeed):
            if let lowSpeed { self.lowSpeed = lowSpeed }
            keepConnection(scheme)
            acceptFile(length: head.length, rest: rest, limit: limit)
        }
        if case .ended = phase { return false }
        return true
    }

    /// The whole size of a file whose bytes have begun to arrive; nil if the server itself did not state it.
    private func sizeOfBegunFile(_ scheme: FileScheme, rest: Int64) -> Int64? {
        let first = request.range?.first ?? 0
        switch scheme {
        case .sftp:
            return rest >= 0 ? first + rest : nil
        case .ftp, .ftps:
            if let size = ftpReplies.size, rest == size - first { return size }
            // Without an answer to SIZE libcurl reads the number from the reply to RETR: some servers state the size of
            // the whole file there, others the size of the rest.
            return first == 0 && rest > 0 ? rest : nil
        }
    }

    private var modificationTime: Int64? {
        let time = easy.offset(CURLINFO_FILETIME_T)
        return time == -1 ? nil : time
    }

    /// Bytes are delivered up to the end of the range or up to the limit, whichever comes first; the server, which was
    /// asked for everything from the first byte on, may have more.
    private func acceptFile(length: Int64?, rest: Int64, limit: Int64?) {
        let most = limit.map { max(0, $0) } ?? Self.unlimited
        if let length, length <= most {
            limitEnd = .delivered
            cutsAtLimit = rest > length
            phase = .body(remaining: length)
        } else {
            cutsAtLimit = length != nil
            phase = cutsAtLimit && most == 0 ? .ended(.surplus) : .body(remaining: most)
        }
        startSpeedWindow(at: monotonicNanoseconds())
    }

    private func show(_ head: FileHead, _ scheme: FileScheme) -> HeadVerdict {
        switch (head.length, scheme) {
        case (let length?, _): framing = .contentLength(length)
        // The server says where the file ends, as a last chunk would.
        case (nil, .sftp): framing = .chunked
        case (nil, .ftp), (nil, .ftps): framing = .untilClose
        }
        announcedBytes = head.length
        return show(status: head.status, version: .notHTTP, headers: head.headers)
    }

    private static let negativeSize = TransferError.protocolViolation(
        TransferError.Detail(code: 0, message: "the server states a negative size of the file")
    )

    private static let noPart = TransferError.protocolViolation(
        TransferError.Detail(code: 0, message: "the server gives no part of the file that could be told as one")
    )
}

// The end of a transfer without any body byte.
extension Transfer {
    /// Derives a head from the result code, if possible, shows it to the handler, and works out the outcome.
    func fileOutcome(of code: CURLcode, _ scheme: FileScheme, _ statistics: TransferStatistics) -> TransferOutcome {
        guard let head = fileHead(for: code, scheme) else { return .failed(error(for: code), statistics) }
        switch show(head, scheme) {
        case .refuse:
            return .refused(statistics)
        case .accept where head.isWithoutBody:
            return .failed(Self.noPart, statistics)
        case .accept:
            if let length = head.length, length > 0 { return .failed(truncation(of: length), statistics) }
            return .completed(statistics, framing == .untilClose ? .connectionClosed : .framed)
        }
    }

    /// The head that an HTTP server would have sent; nil if the transfer failed.
    private func fileHead(for code: CURLcode, _ scheme: FileScheme) -> FileHead? {
        let size = sizeOfUntouchedFile(scheme, code)
        let facts = FileHead.Facts(size: size, modificationTime: modificationTime)
        // A busy server may say so in reply to any command; libcurl's code then names the command that failed.
        if code != CURLE_OK, scheme != .sftp, ftpReplies.isBusy { return .refusal(503) }
        switch code {
        case CURLE_OK where request.readsToEnd: return .rest
        case CURLE_OK: return .file(facts, range: request.range)
        // If the stated size promises a body, that body ended without a byte.
        case CURLE_PARTIAL_FILE, CURLE_FTP_COULDNT_RETR_FILE:
            let isBody = ftpReplies.lastCode < 300 && size ?? 0 > request.range?.first ?? 0
            return isBody ? .file(facts, range: request.range) : nil
        case CURLE_BAD_DOWNLOAD_RESUME: return .unsatisfiable(size: size)
        case CURLE_FTP_COULDNT_USE_REST, CURLE_QUOTE_ERROR: return .rangeIgnored(facts)
        // A server that tells the size of a file, but does not open it, has the file: 403, not 404.
        case CURLE_REMOTE_FILE_NOT_FOUND: return .refusal(ftpReplies.size == nil ? 404 : 403)
        case CURLE_REMOTE_ACCESS_DENIED: return .refusal(403)
        case CURLE_LOGIN_DENIED: return .refusal(401)
        default: return nil
        }
    }

    /// The whole size of a file of which no byte arrived; nil if the server did not state it.
    private func sizeOfUntouchedFile(_ scheme: FileScheme, _ code: CURLcode) -> Int64? {
        switch scheme {
        case .ftp, .ftps:
            return ftpReplies.size
        case .sftp:
            let length = easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
            // libcurl reports a size of 0 as unknown. The file was read to its end, and nothing came after the start of the range.
            if code == CURLE_OK { return (request.range?.first ?? 0) + max(0, length) }
            return length >= 0 ? length : nil
        }
    }

    /// The error for a file that ended before its stated size.
    func truncation(of length: Int64) -> TransferError {
        let message = "\(bytesDelivered) of \(length) bytes came"
        return .truncated(TransferError.Detail(code: Int32(bitPattern: CURLE_PARTIAL_FILE.rawValue), message: message))
    }
}

extension Transfer {
    /// Maps the codes of libcurl that have another meaning, or none, for HTTP.
    func fileError(_ code: CURLcode, _ message: String) -> TransferError {
        let detail = TransferError.Detail(code: Int32(bitPattern: code.rawValue), message: message)
        return switch (code, phase) {
        // The server is late with a reply to a command; the connection exists.
        case (CURLE_OPERATION_TIMEDOUT, .waiting): .firstByteTimeout(detail)
        case (CURLE_OPERATION_TIMEDOUT, .body), (CURLE_SSH, .body): .reset(detail)
        // The data connection ended without a byte.
        case (CURLE_FTP_COULDNT_RETR_FILE, _) where ftpReplies.lastCode / 100 == 2: .truncated(detail)
        case (CURLE_FTP_WEIRD_PASS_REPLY, _), (CURLE_FTP_WEIRD_PASV_REPLY, _), (CURLE_FTP_WEIRD_227_FORMAT, _):
            .protocolViolation(detail)
        // The server permanently refuses to send files unconverted (TYPE I).
        case (CURLE_FTP_COULDNT_SET_TYPE, _) where ftpReplies.lastCode / 100 == 5: .protocolViolation(detail)
        case (CURLE_FTP_CANT_GET_HOST, _): .connect(detail)
        default: TransferError(curl: code, message: message)
        }
    }
}
