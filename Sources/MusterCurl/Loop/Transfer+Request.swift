import CLibcurl
import Glibc

// The request.
extension Transfer {
    /// Called when a connection is ready, and the request is about to go out on it (CURLOPT_PREREQFUNCTION). This happens
    /// for each hop, also on a reused connection, which may have been opened under other address rules.
    func beforeRequest(on connection: OpenSockets.Connection) -> Bool {
        switch phase {
        case .ended: return false
        case .connecting where closesIdle:
            closedConnection = connection
            phase = .ended(.delivered)
            return false
        case .connecting, .waiting, .redirecting: break
        case .draining where challenges > 0:
            // libcurl would answer challenges for ever.
            phase = .ended(.refused)
            return false
        case .body, .closing, .draining:
            // A file server gets further commands after its answer has begun. For HTTP, libcurl begins anew in HTTP/1.1,
            // because the stream was reset with HTTP_1_1_REQUIRED, and would append the second body to the first one.
            guard fileScheme == nil else { break }
            let detail = TransferError.Detail(
                code: 0, message: "the stream was reset in the middle: HTTP/1.1 is required")
            phase = .ended(.failed(.streamReset(detail)))
            return false
        }
        if let addressAllowed = request.addressAllowed, !addressAllowed(connection.peer) {
            phase = .ended(.failed(refusal(of: connection.peer)))
            return false
        }
        if openedSockets == 0, fileScheme == nil, let reason = unfitness(of: connection) {
            unfitness = reason
            let detail = TransferError.Detail(code: 0, message: reason.rawValue)
            phase = .ended(.failed(.reset(detail)))
            return false
        }
        // Noted once for each connection, and only where a version is chosen in the handshake.
        if openedSockets > 0, request.httpVersion == .http1, isOverTLS {
            sockets.noteHTTP1(on: connection)
        }
        keepSecretsAtHome()
        if openedSockets > 0 { hasOpenedConnection = true }
        self.connection = connection
        sockets.begin(id, on: connection)
        // Sockets that are opened from here on are the data connections of ftp.
        refusedAddress = nil
        socketError = nil
        openedSockets = 0
        waitForPeer()
        return true
    }

    private var isOverTLS: Bool { easy.string(CURLINFO_SCHEME).lowercased() == "https" }

    /// Notes that an answer in HTTP/2 has come.
    func noteVersion() {
        if collector.version == .http2, let connection { sockets.noteHTTP2(on: connection) }
    }

    /// Why the request must not go out on a connection that was used before; `nil` if it may.
    private func unfitness(of connection: OpenSockets.Connection) -> UnfitConnection? {
        if request.httpVersion != .http1, sockets.isBusy(connection, besides: id), isOverTLS { return .busy }
        return switch request.httpVersion {
        case .http1: sockets.hasUnread(on: connection) ? .surplus : nil
        // A peer that speaks HTTP/2 may say something at any time.
        case .http2OverTLS where !isOverTLS:
            sockets.hasUnread(on: connection) ? .surplus : nil
        // After a redirect something was sent already.
        case .http2AfterRefusal: lastHopWasTLS == nil && sockets.spokeHTTP1(on: connection) ? .http1 : nil
        case .http2OverTLS, .priorKnowledge: nil
        }
    }

    /// Asked before a socket is opened (CURLOPT_OPENSOCKETFUNCTION), so that not even a SYN reaches a refused address.
    func mayConnect(to address: String) -> Bool {
        triedAddress = address
        if closesIdle { return false }
        if let addressAllowed = request.addressAllowed, !addressAllowed(address) {
            refusedAddress = address
            return false
        }
        openedSockets += 1
        return true
    }

    /// Notes that no socket could be opened. Too many descriptors or too little memory is the fault of this process or
    /// machine, not the peer's.
    func socketFailed(_ number: Int32) {
        openedSockets -= 1
        guard [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(number) else { return }
        socketError = String(cString: strerror(number))
    }

    func refusal(of address: String) -> TransferError {
        .refusedAddress(TransferError.Detail(code: 0, message: "the address \(address) is not allowed"))
    }

    /// Fills libcurl's send buffer (CURLOPT_READFUNCTION).
    func fillUpload(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if case .ended = phase { return Int(CURL_READFUNC_ABORT) }
        if case .waiting = phase { waitForPeer() }
        switch upload.read(into: buffer) {
        case .bytes(let count): return count
        case .end: return 0
        case .pause: return Int(CURL_READFUNC_PAUSE)
        case .abort:
            let detail = TransferError.Detail(code: 0, message: "the request body's source gave up")
            phase = .ended(.failed(.sendFailed(detail)))
            return Int(CURL_READFUNC_ABORT)
        }
    }
}
