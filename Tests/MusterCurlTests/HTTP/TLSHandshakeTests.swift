import MusterCurl
import Testing

/// What ends a handshake of TLS (RFC 8446 §6), and whether it will be so again.
@Suite(.timeLimit(.minutes(1)))
struct TLSHandshakeTests {
    /// What a server does with a connection, which has to be TLS.
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
                // Not before its side of the connection stands.
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

    @Test(arguments: Manner.allCases)
    func onlyWhatLastsIsAFailureOfTLS(_ manner: Manner) async throws {
        try await withServer { connection, _ in
            manner.serve(connection)
        } _: { loop, server in
            let outcome = try await fetch(loop, TransferRequest(url: "https://127.0.0.1:\(server.port)/")).outcome
            #expect(outcome.error?.kind == (manner.isPassing ? "connection reset" : "TLS failed"), "\(outcome)")
            #expect(outcome.error?.detail.message.contains("in the TLS handshake") == manner.isPassing, "\(outcome)")
        }
    }
}
