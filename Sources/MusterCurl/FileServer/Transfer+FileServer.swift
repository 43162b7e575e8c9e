import CLibcurl

// Transfers by ftp, ftps and sftp (range contract, row 37). No head comes there: one is made before the first byte of the body,
// or at the end if none comes.
extension Transfer {
    /// Takes a line of an FTP server (CURLOPT_HEADERFUNCTION).
    func receiveReply(_ line: UnsafeRawBufferPointer) -> Int {
        if case .ended = phase { return Int(CURL_WRITEFUNC_ERROR) }
        ftpReplies.take(line)
        return line.count
    }

    /// Shows the head when the first bytes are there; false if the transfer is to end.
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

    /// The whole size of a file whose bytes have begun to come, nil if it is not the server's own word.
    private func sizeOfBegunFile(_ scheme: FileScheme, rest: Int64) -> Int64? {
        let first = request.range?.first ?? 0
        switch scheme {
        case .sftp:
            return rest >= 0 ? first + rest : nil
        case .ftp, .ftps:
            if let size = ftpReplies.size, rest == size - first { return size }
            // Without an answer to SIZE libcurl reads the number out of the reply to RETR, which some servers make to be
            // of the whole file and some of the rest.
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

// The end of a transfer of which no byte came.
extension Transfer {
    /// Shows the head that the end amounts to, if it does, and works out the outcome.
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

    /// What a server of HTTP would have answered; nil if the end is a failure of the transfer.
    private func fileHead(for code: CURLcode, _ scheme: FileScheme) -> FileHead? {
        let size = sizeOfUntouchedFile(scheme, code)
        let facts = FileHead.Facts(size: size, modificationTime: modificationTime)
        // A server that is busy may say so anywhere, and libcurl then names the place.
        if code != CURLE_OK, scheme != .sftp, ftpReplies.isBusy { return .refusal(503) }
        switch code {
        case CURLE_OK where request.readsToEnd: return .rest
        case CURLE_OK: return .file(facts, range: request.range)
        // A body was to come, as the size says, and has ended at once.
        case CURLE_PARTIAL_FILE, CURLE_FTP_COULDNT_RETR_FILE:
            let isBody = ftpReplies.lastCode < 300 && size ?? 0 > request.range?.first ?? 0
            return isBody ? .file(facts, range: request.range) : nil
        case CURLE_BAD_DOWNLOAD_RESUME: return .unsatisfiable(size: size)
        case CURLE_FTP_COULDNT_USE_REST, CURLE_QUOTE_ERROR: return .rangeIgnored(facts)
        // Who tells the size of a file, but does not open it, has it.
        case CURLE_REMOTE_FILE_NOT_FOUND: return .refusal(ftpReplies.size == nil ? 404 : 403)
        case CURLE_REMOTE_ACCESS_DENIED: return .refusal(403)
        case CURLE_LOGIN_DENIED: return .refusal(401)
        default: return nil
        }
    }

    /// The whole size of a file of which nothing came, nil if the server did not tell it.
    private func sizeOfUntouchedFile(_ scheme: FileScheme, _ code: CURLcode) -> Int64? {
        switch scheme {
        case .ftp, .ftps:
            return ftpReplies.size
        case .sftp:
            let length = easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
            // libcurl leaves the size unknown if it is 0; the file was read to its end, and there was nothing.
            if code == CURLE_OK { return (request.range?.first ?? 0) + max(0, length) }
            return length >= 0 ? length : nil
        }
    }

    /// A file that ended before its size did.
    func truncation(of length: Int64) -> TransferError {
        let message = "\(bytesDelivered) of \(length) bytes came"
        return .truncated(TransferError.Detail(code: Int32(bitPattern: CURLE_PARTIAL_FILE.rawValue), message: message))
    }
}

extension Transfer {
    /// Sorts the codes that mean something else, or nothing, with HTTP.
    func fileError(_ code: CURLcode, _ message: String) -> TransferError {
        let detail = TransferError.Detail(code: Int32(bitPattern: code.rawValue), message: message)
        return switch (code, phase) {
        // The server's turn to answer a command, not ours to connect.
        case (CURLE_OPERATION_TIMEDOUT, .waiting): .firstByteTimeout(detail)
        case (CURLE_OPERATION_TIMEDOUT, .body), (CURLE_SSH, .body): .reset(detail)
        // The data connection ended without a byte.
        case (CURLE_FTP_COULDNT_RETR_FILE, _) where ftpReplies.lastCode / 100 == 2: .truncated(detail)
        case (CURLE_FTP_WEIRD_PASS_REPLY, _), (CURLE_FTP_WEIRD_PASV_REPLY, _), (CURLE_FTP_WEIRD_227_FORMAT, _):
            .protocolViolation(detail)
        // It has no bytes as they are, for anybody.
        case (CURLE_FTP_COULDNT_SET_TYPE, _) where ftpReplies.lastCode / 100 == 5: .protocolViolation(detail)
        case (CURLE_FTP_CANT_GET_HOST, _): .connect(detail)
        default: TransferError(curl: code, message: message)
        }
    }
}
