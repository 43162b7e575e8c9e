import CLibcurl
import Testing

@testable import MusterCurl

/// Failures of the TLS handshake (RFC 8446 §6), and which of them are permanent.
@Suite(.timeLimit(.minutes(1)))
struct TLSHandshakeTests {
    /// What the server does on a connection on which the client expects TLS.
    enum Manner: CaseIterable {
        case closes, closesAfterHello, resets, internalError, unrecognizedName
        case handshakeFailure, protocolVersion, noApplicationProtocol, speaksHTTP, speaksSSH

        var isPassing: Bool {
            switch self {
            case .closes, .closesAfterHello, .resets, .internalError, .unrecognizedName: true
            case .handshakeFailure, .protocolVersion, .noApplicationProtocol, .speaksHTTP, .speaksSSH: false
            }
        }

        fileprivate func serve(_ connection: RawConnection) {
            switch self {
            case .closes: return connection.finish()
            case .resets:
                // Reads first, so that the client's side of the connection is established.
                _ = connection.readSome()
                return connection.reset()
            case .closesAfterHello: break
            case .internalError: alert(80, connection)
            case .unrecognizedName: alert(112, connection)
            case .handshakeFailure: alert(40, connection)
            case .protocolVersion: alert(70, connection)
            case .noApplicationProtocol: alert(120, connection)
            case .speaksHTTP: connection.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            case .speaksSSH: connection.send("SSH-2.0-OpenSSH_9.2p1\r\n")
            }
            _ = connection.readSome()
            connection.finish()
            connection.waitForPeerToClose()
        }

        private func alert(_ number: UInt8, _ connection: RawConnection) {
            connection.send([0x15, 3, 3, 0, 2, 2, number])
        }
    }

    /// In TLS 1.3 a server refuses a bad or missing client certificate only in place of the response.
    @Test(arguments: [
        (CURLE_RECV_ERROR, "tlsv13 alert certificate required", "TLS failed"),
        (CURLE_SEND_ERROR, "tlsv1 alert unknown ca", "TLS failed"),
        (CURLE_SEND_ERROR, "getpeername() failed with errno 107: not connected", "connection reset"),
        (CURLE_RECV_ERROR, "tlsv1 alert internal error", "connection reset"),
    ])
    func refusalOfTheClientsCertificateIsAFailureOfTLS(code: CURLcode, message: String, kind: String) {
        let error = TransferError(
            curl: code, message: "OpenSSL SSL_read: error:0A00045C:SSL routines::\(message), errno 0")
        #expect(error.kind == kind)
    }

    @Test(arguments: Manner.allCases)
    func onlyPermanentHandshakeFailuresAreFailuresOfTLS(_ manner: Manner) async throws {
        try await withServer { connection, _ in
            manner.serve(connection)
        } _: { loop, server in
            let outcome = try await fetch(loop, TransferRequest(url: "https://127.0.0.1:\(server.port)/")).outcome
            #expect(outcome.error?.kind == (manner.isPassing ? "connection reset" : "TLS failed"), "\(outcome)")
            #expect(outcome.error?.detail.message.contains("in the TLS handshake") == manner.isPassing, "\(outcome)")
        }
    }
}
