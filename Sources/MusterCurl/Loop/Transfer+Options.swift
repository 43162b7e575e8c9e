import CLibcurl
import Glibc

extension Transfer {
    /// Sets up the handle for the request; an error if the request cannot be sent as it is.
    func configure() -> TransferError? {
        if let problem = checkRequest() { return problem }
        easy.set(CURLOPT_URL, request.url)
        setLimits()
        setSecurity()
        setProxy()
        if let fileScheme {
            setFileOptions(fileScheme)
        } else {
            setHTTP()
            setCookies()
            setBody()
            easy.set(CURLOPT_HTTPHEADER, headerLines(atHome: true))
        }
        if closesIdle { easy.set(CURLOPT_FORBID_REUSE, true) }
        setCallbacks()
        armDeadline()
        armHeartbeat(at: startedAt)
        guard easy.firstRefusal == CURLE_OK else {
            return TransferError(curl: easy.firstRefusal, message: easy.message(for: easy.firstRefusal))
        }
        return nil
    }

    private func setLimits() {
        // Without this libcurl uses signals for name lookups, which are unsafe in a threaded program.
        easy.set(CURLOPT_NOSIGNAL, true)
        // A cancelled name lookup must not make the loop wait for the resolver's thread.
        easy.set(CURLOPT_QUICK_EXIT, true)
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.millisecondsForCurl)
        easy.set(CURLOPT_BUFFERSIZE, min(max(request.receiveBufferBytes, 16 * 1024), 512 * 1024))
        easy.set(CURLOPT_UPLOAD_BUFFERSIZE, 128 * 1024)
        easy.set(CURLOPT_TCP_KEEPALIVE, true)
        easy.set(CURLOPT_TCP_KEEPIDLE, 30)
        easy.set(CURLOPT_TCP_KEEPINTVL, 15)
    }

    private func setHTTP() {
        easy.set(CURLOPT_FOLLOWLOCATION, request.maxRedirects > 0)
        easy.set(CURLOPT_MAXREDIRS, max(0, request.maxRedirects))
        // An HTTP origin must not redirect to a file server: other rules hold there.
        let schemes = request.allowedSchemes.filter { ["http", "https"].contains($0) }
        if !schemes.isEmpty { easy.set(CURLOPT_REDIR_PROTOCOLS_STR, schemes.joined(separator: ",")) }
        // A transfer coding is no part of the content: with this option libcurl removes it, or fails (RFC 9112 §7).
        // libcurl leaves a content coding alone, since it did not set Accept-Encoding itself.
        easy.set(CURLOPT_HTTP_CONTENT_DECODING, true)
        switch request.httpVersion {
        case .http1: easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        case .http2OverTLS, .http2AfterRefusal: easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        case .priorKnowledge:
            easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE))
            // libcurl 7.88 fails (CURLE_HTTP2) on a connection of this kind that it uses a second time.
            easy.set(CURLOPT_FRESH_CONNECT, true)
            easy.set(CURLOPT_FORBID_REUSE, true)
        }
        if request.isAlone { easy.set(CURLOPT_FRESH_CONNECT, true) }
        if let range = request.range {
            easy.set(CURLOPT_RANGE, "\(range.first)-\(range.last.map { String($0) } ?? "")")
        }
        if let userAgent = request.userAgent { easy.set(CURLOPT_USERAGENT, userAgent) }
    }

    private func setSecurity() {
        easy.set(CURLOPT_PROTOCOLS_STR, request.allowedSchemes.joined(separator: ","))
        easy.set(CURLOPT_SSL_VERIFYPEER, true)
        easy.set(CURLOPT_SSL_VERIFYHOST, 2)
        easy.set(CURLOPT_UNRESTRICTED_AUTH, request.trustsRedirects)
        if let caFile = request.caFile { easy.set(CURLOPT_CAINFO, caFile) }
        if let certificate = request.clientCertificate {
            easy.set(CURLOPT_SSLCERT, certificate.certificatePath)
            easy.set(CURLOPT_SSLKEY, certificate.keyPath)
        }
        // Whatever the authentication scheme, libcurl sends credentials only to the first origin.
        if request.authentication == .onChallenge { easy.set(CURLOPT_HTTPAUTH, muster_curl_auth_on_challenge()) }
        if let credentials = request.credentials { easy.set(CURLOPT_USERPWD, credentials) }
        if let netrc = request.netrcFile {
            easy.set(CURLOPT_NETRC, Int(CURL_NETRC_OPTIONAL.rawValue))
            easy.set(CURLOPT_NETRC_FILE, netrc)
        }
    }

    private func setProxy() {
        easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
        switch request.proxy {
        // An empty name turns off the environment's proxies too.
        case .direct: easy.set(CURLOPT_PROXY, "")
        case .environment: break
        case .url(let url): easy.set(CURLOPT_PROXY, url)
        }
    }

    private func setBody() {
        switch (request.method, upload.isNone) {
        case ("GET", true):
            easy.set(CURLOPT_HTTPGET, true)
        case ("HEAD", true):
            easy.set(CURLOPT_NOBODY, true)
        case ("POST", true):
            easy.set(CURLOPT_POST, true)
            easy.set(CURLOPT_COPYPOSTFIELDS, "")
        case ("POST", false):
            easy.set(CURLOPT_POST, true)
            easy.setOffset(CURLOPT_POSTFIELDSIZE_LARGE, upload.length ?? -1)
        case (let method, true):
            easy.set(CURLOPT_CUSTOMREQUEST, method)
        case (let method, false):
            easy.set(CURLOPT_UPLOAD, true)
            easy.set(CURLOPT_CUSTOMREQUEST, method)
            easy.setOffset(CURLOPT_INFILESIZE_LARGE, upload.length ?? -1)
        }
    }

    /// The caller's fields in libcurl's spelling, and what keeps libcurl from adding fields of its own.
    func headerLines(atHome: Bool) -> [String] {
        let fields = request.headers.fields + (atHome ? request.originHeaders.fields : [])
        // A name with a semicolon is how libcurl is told to send an empty value; "Name:" would remove the field.
        var lines = fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        // A User-Agent among the origin's fields makes libcurl drop CURLOPT_USERAGENT, so it is set as a field here.
        if !atHome, let userAgent = request.userAgent, request.originHeaders.contains("User-Agent") {
            lines.append("User-Agent: \(userAgent)")
        }
        if request.method == "POST" {
            if !request.headers.contains("Content-Type") { lines.append("Content-Type:") }
            if upload.length == nil { lines.append("Transfer-Encoding: chunked") }
        }
        // Waiting for "100 Continue" costs a second wherever the peer does not know it.
        if !upload.isNone, !request.headers.contains("Expect") { lines.append("Expect:") }
        return lines
    }

    private func checkRequest() -> TransferError? {
        let invalid = { (message: String) in
            TransferError.invalidRequest(TransferError.Detail(code: 0, message: message))
        }
        let malformed = { (message: String) in
            TransferError.malformedURL(TransferError.Detail(code: 0, message: message))
        }
        guard request.url.contains("://") else { return malformed("the URL has no scheme") }
        guard !request.url.utf8.contains(where: Self.isControl) else { return malformed("a control character") }
        guard Self.isToken(request.method) else { return invalid("the method is not a token") }
        for field in request.headers.fields + request.originHeaders.fields {
            guard Self.isToken(field.name) else { return invalid("a header's name is not a token") }
            guard !field.value.utf8.contains(where: Self.isLineBreak) else {
                return invalid("the header \(field.name) has a line break or NUL in its value")
            }
        }
        if let problem = checkFiles() { return problem }
        if let fileScheme, request.allowedSchemes.contains(fileScheme.rawValue), let complaint = complaint(fileScheme) {
            return invalid(complaint)
        }
        let texts = [request.userAgent, request.credentials, request.caFile, request.cookies].compactMap { $0 }
        guard !texts.contains(where: { $0.utf8.contains(where: Self.isLineBreak) }) else {
            return invalid("a line break or NUL in a setting")
        }
        if let range = request.range {
            guard range.first >= 0, range.last.map({ $0 >= range.first }) ?? true else {
                return invalid("an empty range")
            }
        }
        if let length = upload.length, length < 0 { return invalid("a negative body length") }
        return nil
    }

    /// Rejects unreadable files: libcurl would go on without them, although the caller relies on what they contain.
    private func checkFiles() -> TransferError? {
        let files = [
            ("cookie file", request.cookieFile), ("netrc file", request.netrcFile),
            ("private key file", request.privateKeyFile),
        ]
        for (name, path) in files {
            guard let path else { continue }
            // libcurl takes a hyphen for the standard input.
            guard path != "-", access(path, R_OK) == 0 else {
                return .invalidRequest(TransferError.Detail(code: 0, message: "the \(name) cannot be read"))
            }
        }
        return nil
    }

    private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

    private static func isLineBreak(_ byte: UInt8) -> Bool { byte == 0 || byte == 0x0A || byte == 0x0D }

    /// Whether a text is a token (RFC 9110 §5.6.2).
    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
                default: false
                }
            }
    }
}
