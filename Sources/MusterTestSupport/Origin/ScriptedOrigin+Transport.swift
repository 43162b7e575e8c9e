extension ScriptedOrigin {
    /// What an origin speaks.
    public enum Transport: Sendable, Hashable, CaseIterable {
        /// HTTP/1.1 over TCP.
        case plain
        /// HTTP/1.1 over TLS.
        case tls
        /// HTTP/2 over TLS, where the client offers it (ALPN); else HTTP/1.1.
        case h2
        /// HTTP/2 over TCP, by prior knowledge (RFC 9113 §3.3).
        case h2c

        /// Whether there is TLS.
        public var isTLS: Bool { wire.isTLS }

        var wire: Wire {
            switch self {
            case .plain: Wire(isTLS: false, version: .http1)
            case .tls: Wire(isTLS: true, version: .http1)
            case .h2: Wire(isTLS: true, version: .http2)
            case .h2c: Wire(isTLS: false, version: .http2)
            }
        }
    }

    /// The version of HTTP that a request came by.
    public enum Version: Sendable, Hashable {
        case http1
        case http2
    }

    /// Whether an origin with TLS asks its clients for certificates (row 38).
    public enum ClientCertificates: Sendable, Hashable {
        /// It does not ask.
        case ignored
        /// It asks, and checks what it gets. See ``Requirement/clientCertificate``.
        case asked
        /// The handshake fails without a valid certificate.
        case required
    }

    /// What one connection has agreed on.
    struct Wire: Sendable, Hashable {
        var isTLS: Bool
        var version: Version
    }
}

extension ScriptedOrigin.Misbehaviour {
    /// Whether it exists over a transport: HTTP/2 has no transfer codings, and HTTP/1.1 no streams. Over HTTP/2
    /// - a missing Content-Length stands for chunks, END_STREAM for a clean close, RST_STREAM for a reset and for chunks
    ///   without an end,
    /// - surplus bytes are DATA beyond the content-length, which RFC 9113 §8.1.1 calls malformed, as it does a
    ///   content-length that is negative or given twice.
    ///
    /// A misbehaviour that does not exist over a connection is not played on it.
    public func isPlayable(over transport: ScriptedOrigin.Transport) -> Bool { isPlayable(over: transport.wire) }

    func isPlayable(over wire: ScriptedOrigin.Wire) -> Bool {
        switch self {
        case .closeDelimited, .transferEncodingAndContentLength, .garbage:
            wire.version == .http1
        case .resetStream, .goAway:
            wire.version == .http2
        case .uncleanClose, .requires(.clientCertificate):
            wire.isTLS
        case .ignoreRange, .contentRangeShifted, .partAsWhole, .refuseIfRange, .statusOnly, .rangeShifted,
            .noContentRange,
            .contentRange, .shortRange, .surplus,
            .unmodified, .contentLengthOff, .replaced, .totalSize, .etag, .lastModified, .nodes, .mixedCache,
            .multipartByteRanges,
            .weakETag, .mistrustIfRange, .ignoreIfRange, .ignoreConditions, .noValidators, .date, .contentEncoding,
            .chunked,
            .chunkedUnterminated, .truncated, .reset, .rangeNotSatisfiable, .rangeNotSatisfiableStating, .refuseHead,
            .lieInHead, .acceptRanges, .redirect, .redirectChain, .redirectForCookie, .redirectToSigned, .status,
            .limit, .closeBeforeHeaders, .resetBeforeHeaders, .htmlErrorPage, .conflictingContentLengths,
            .negativeContentLength, .drip, .hangBeforeHeaders, .hang, .corruptByte, .headers, .interim, .requires:
            true
        }
    }
}
