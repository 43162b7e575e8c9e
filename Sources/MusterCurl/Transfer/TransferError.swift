import CLibcurl

/// Why a transfer failed. Each case keeps the CURLcode and the message.
public enum TransferError: Error, Sendable, Hashable {
    /// What libcurl said, or what the loop itself found (then the code is 0).
    public struct Detail: Sendable, Hashable {
        /// The CURLcode, 0 if the loop itself ended the transfer.
        public var code: Int32
        /// A sentence for people; it may name the host, never a header's value.
        public var message: String

        /// Makes a detail.
        public init(code: Int32, message: String) {
            self.code = code
            self.message = message
        }
    }

    /// The host's name has no address, or the name service failed.
    case dns(Detail)
    /// The connection was refused, or no address could be reached.
    case connect(Detail)
    /// The proxy was not reached, or would not pass the request on: the origin was not asked.
    case proxy(Detail)
    /// This process, or this machine, can open no socket for now: the peer was not asked.
    case noSocket(Detail)
    /// The certificate can't be verified, or the two sides can't agree on how to speak TLS: another try would fail alike.
    case tls(Detail)
    /// No connection (name, TCP and TLS together) within ``TransferRequest/connectTimeout``.
    case connectTimeout(Detail)
    /// Connected, but no response head within ``TransferRequest/firstByteTimeout``.
    case firstByteTimeout(Detail)
    /// The peer sent less than ``TransferRequest/lowSpeed`` allows.
    case tooSlow(Detail)
    /// Not over within ``TransferRequest/deadline``.
    case deadline(Detail)
    /// The connection ended before the body did, as its framing tells.
    case truncated(Detail)
    /// The connection was reset, or closed without an answer, in the TLS handshake too.
    case reset(Detail)
    /// HTTP/2 itself failed: the peer reset the stream, said GOAWAY, left in the middle of the stream, or does not speak it
    /// properly. HTTP/1.1 may do better (range contract, row 23).
    case streamReset(Detail)
    /// More redirects than ``TransferRequest/maxRedirects``.
    case tooManyRedirects(Detail)
    /// The URL's or a redirect's scheme is not in ``TransferRequest/allowedSchemes``.
    case unsupportedScheme(Detail)
    /// The URL, or a redirect's Location, cannot be parsed.
    case malformedURL(Detail)
    /// The method, a header, or another part of the request cannot be sent safely (for example a line break in a value).
    case invalidRequest(Detail)
    /// ``TransferRequest/addressAllowed`` rejected every address of the host; nothing was sent to it.
    case refusedAddress(Detail)
    /// ``TransferRequest/redirectAllowed`` rejected the target of a redirect; nothing was sent there.
    case refusedRedirect(Detail)
    /// The peer does not speak proper HTTP, or its head is over ``TransferRequest/maxHeadBytes``.
    case protocolViolation(Detail)
    /// The request (its body) could not be sent, or could not be sent again where that was needed.
    case sendFailed(Detail)
    /// Anything else; see the code.
    case other(Detail)

    /// The code and the message.
    public var detail: Detail {
        switch self {
        case .dns(let detail), .connect(let detail), .proxy(let detail), .noSocket(let detail), .tls(let detail),
            .connectTimeout(let detail),
            .firstByteTimeout(let detail), .tooSlow(let detail), .deadline(let detail), .truncated(let detail),
            .reset(let detail), .streamReset(let detail), .tooManyRedirects(let detail), .unsupportedScheme(let detail),
            .malformedURL(let detail), .invalidRequest(let detail), .refusedAddress(let detail),
            .refusedRedirect(let detail),
            .protocolViolation(let detail), .sendFailed(let detail), .other(let detail):
            detail
        }
    }
}

extension TransferError: CustomStringConvertible {
    /// The kind and the message.
    public var description: String {
        let kind =
            switch self {
            case .dns: "name not resolved"
            case .connect: "not connected"
            case .proxy: "proxy failed"
            case .noSocket: "no socket"
            case .tls: "TLS failed"
            case .connectTimeout: "connect timeout"
            case .firstByteTimeout: "first-byte timeout"
            case .tooSlow: "too slow"
            case .deadline: "deadline passed"
            case .truncated: "truncated"
            case .reset: "connection reset"
            case .streamReset: "stream reset"
            case .tooManyRedirects: "too many redirects"
            case .unsupportedScheme: "unsupported scheme"
            case .malformedURL: "malformed URL"
            case .invalidRequest: "invalid request"
            case .refusedAddress: "refused address"
            case .refusedRedirect: "refused redirect"
            case .protocolViolation: "protocol violation"
            case .sendFailed: "send failed"
            case .other: "transfer failed"
            }
        return detail.message.isEmpty ? kind : "\(kind): \(detail.message)"
    }
}

extension TransferError {
    /// Drops a message that quotes the URL of a proxy: libcurl quotes a URL that it can't use, with the password.
    private static func withoutURL(_ detail: Detail) -> Detail {
        guard detail.message.hasPrefix("Unsupported proxy") else { return detail }
        return Detail(code: detail.code, message: "its URL can't be used")
    }

    /// Sorts a CURLcode into its kind. The loop keeps deadlines, first-byte and speed limits itself, so that libcurl's
    /// own timeout can only mean the connect timeout.
    init(curl code: CURLcode, message: String) {
        let detail = Detail(code: Int32(bitPattern: code.rawValue), message: message)
        self =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST: .dns(detail)
            case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy(Self.withoutURL(detail))
            case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: .connect(detail)
            case CURLE_SSL_CONNECT_ERROR where Self.isPassingInHandshake(message):
                .reset(Detail(code: detail.code, message: "in the TLS handshake: \(message)"))
            case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
                CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
                CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
                CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT,
                CURLE_USE_SSL_FAILED:
                .tls(detail)
            case CURLE_OPERATION_TIMEDOUT: .connectTimeout(detail)
            case CURLE_PARTIAL_FILE where message.contains("HTTP/2 stream"): .streamReset(detail)
            case CURLE_PARTIAL_FILE: .truncated(detail)
            // libcurl reports malformed chunks by these two codes, although the connection is intact, and a head that
            // begins with a folded line by the first code.
            case CURLE_BAD_FUNCTION_ARGUMENT: .protocolViolation(detail)
            case CURLE_RECV_ERROR where message.contains("chunk") || message.contains("header"):
                .protocolViolation(detail)
            // libcurl reports a proxy's refusal of a tunnel by the code of a broken connection.
            case CURLE_RECV_ERROR where message.contains("CONNECT tunnel"): .proxy(detail)
            case CURLE_RECV_ERROR where Self.isAboutCertificate(message),
                CURLE_SEND_ERROR where Self.isAboutCertificate(message):
                .tls(detail)
            // The peer was gone before the request was sent.
            case CURLE_SEND_ERROR where message.contains("getpeername"): .reset(detail)
            // A stream that was refused five times, each time on a new connection; or a response that is not HTTP/2.
            case CURLE_RECV_ERROR where message.contains("Connection died, tried") || message.contains("nghttp2"):
                .streamReset(detail)
            case CURLE_RECV_ERROR, CURLE_GOT_NOTHING: .reset(detail)
            case CURLE_HTTP2, CURLE_HTTP2_STREAM: .streamReset(detail)
            case CURLE_TOO_MANY_REDIRECTS: .tooManyRedirects(detail)
            // libcurl reports invalid status lines by the same code: only a message about the "Protocol" or the "URL
            // scheme" is about the scheme.
            case CURLE_UNSUPPORTED_PROTOCOL
            where !message.lowercased().contains("protocol") && !message.contains("URL scheme"):
                .protocolViolation(detail)
            case CURLE_UNSUPPORTED_PROTOCOL: .unsupportedScheme(detail)
            case CURLE_URL_MALFORMAT: .malformedURL(detail)
            // The loop handles the ends that our own callbacks cause; what is left is content that can't be decoded.
            case CURLE_WRITE_ERROR:
                .protocolViolation(
                    Detail(
                        code: detail.code, message: "the coded content can't be decoded, or something follows its end"))
            case CURLE_WEIRD_SERVER_REPLY, CURLE_FILESIZE_EXCEEDED, CURLE_BAD_CONTENT_ENCODING:
                .protocolViolation(detail)
            case CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND, CURLE_READ_ERROR, CURLE_ABORTED_BY_CALLBACK:
                .sendFailed(detail)
            default: .other(detail)
            }
    }
    /// Whether the peer's alert is about this side's certificate, or demands one: in TLS 1.3 it comes after the
    /// handshake, in place of a response (RFC 8446 §6.2).
    private static func isAboutCertificate(_ message: String) -> Bool {
        ["certificate", "unknown ca", "access denied"].contains { message.contains(" alert ") && message.contains($0) }
    }

    /// Whether the TLS handshake failed for a passing reason, not because of the certificate or of what the two sides
    /// support: the connection ended, or the peer reported a fault of its own, or reported that it serves no host of that
    /// name, as some peers do when they are busy.
    private static func isPassingInHandshake(_ message: String) -> Bool {
        [
            "Recv failure", "Send failure", "SSL_connect: ", "unexpected eof", "alert internal error",
            "alert user cancel", "unrecognized name",
        ].contains { message.contains($0) }
    }
}
