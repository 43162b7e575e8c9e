import FoundationEssentials
public import MusterCore

extension FetchOptions {
    /// Throws if an option is impossible, with the JSON pointer below the options. No reason contains a value, since it may be a secret.
    ///
    /// The worker checks what a reference leads to when it reads it.
    public func check() throws(InputRefusal) {
        try Self.check(headers: headers)
        try checkCookies()
        try checkProxy()
        if let credentials {
            // Empty where a token is the password (RFC 7617 §2).
            if !credentials.user.isEmpty { try Self.text(credentials.user, "/credentials/user") }
            try Self.secret(credentials.password, "/credentials/password")
            guard !credentials.user.utf8.contains(UInt8(ascii: ":")) else {
                throw InputRefusal(pointer: "/credentials/user", reason: "must not contain a colon (RFC 7617 §2)")
            }
        }
        try checkPaths()
        try checkNumbers()
    }

    /// Throws if a header field is impossible, with the pointer `/headers/NAME`: the rules are those of a task's own headers.
    static func check(headers: [String: Secret]?) throws(InputRefusal) {
        guard let headers else { return }
        _ = try TaskSpecification.headers(headers.mapValues(\.given))
        try HeaderNames.check(headers.keys, at: "/headers")
        for (name, secret) in headers.sorted(by: { $0.key < $1.key }) {
            try wellFormed(secret, "/headers/\(InputRefusal.pointerPart(name))")
        }
    }

    /// A cookie's name is a token, and neither name nor value may end the pair or the field (RFC 6265 §4.1.1).
    private func checkCookies() throws(InputRefusal) {
        guard let cookies else { return }
        guard cookies.count <= Limits.headersPerTask else {
            throw InputRefusal(pointer: "/cookies", reason: "at most \(Limits.headersPerTask) cookies")
        }
        for (name, value) in cookies.sorted(by: { $0.key < $1.key }) {
            let pointer = "/cookies/\(InputRefusal.pointerPart(name))"
            try Self.text(name + value.given, pointer)
            try Self.wellFormed(value, pointer)
            guard !name.isEmpty, !name.utf8.contains(where: { ";= ,\"".utf8.contains($0) }) else {
                throw InputRefusal(pointer: pointer, reason: "not a cookie's name (RFC 6265 §4.1.1)")
            }
            if case .value(let text) = value.form, text.utf8.contains(UInt8(ascii: ";")) {
                throw InputRefusal(pointer: pointer, reason: "a cookie must not contain a semicolon (RFC 6265 §4.1.1)")
            }
        }
    }

    private static let proxySchemes: Set<String> = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    private func checkProxy() throws(InputRefusal) {
        guard let proxy else { return }
        try Self.secret(proxy, "/proxy")
        guard case .value(let text) = proxy.form, text != "direct", text != "environment" else { return }
        let components = URLComponents(string: text)
        guard let scheme = components?.scheme?.lowercased(), Self.proxySchemes.contains(scheme),
            components?.host?.isEmpty == false, !text.contains(where: \.isWhitespace)
        else {
            throw InputRefusal(
                pointer: "/proxy",
                reason: "must be direct, environment, or a URL of http, https, socks4, socks4a, socks5 or socks5h")
        }
    }

    private func checkPaths() throws(InputRefusal) {
        let paths = [
            ("/cookieFile", cookieFile), ("/netrc", netrc), ("/caFile", caFile), ("/knownHosts", knownHosts),
            ("/privateKey", privateKey), ("/clientCertificate/certificate", clientCertificate?.certificate),
            ("/clientCertificate/key", clientCertificate?.key),
        ]
        for (pointer, path) in paths {
            guard let path else { continue }
            try Self.text(path, pointer)
            // Bytes, not Swift's characters: see `DestinationPath`.
            guard path.utf8.first == UInt8(ascii: "/") else {
                throw InputRefusal(pointer: pointer, reason: "must be an absolute path on the worker's machine")
            }
        }
    }

    private func checkNumbers() throws(InputRefusal) {
        let numbers = [
            ("/connectTimeoutSeconds", connectTimeoutSeconds), ("/firstByteTimeoutSeconds", firstByteTimeoutSeconds),
            ("/lowSpeedSeconds", lowSpeedSeconds),
        ]
        for (pointer, seconds) in numbers {
            if let seconds, !(1...3_600).contains(seconds) {
                throw InputRefusal(pointer: pointer, reason: "must be within 1...3600 seconds")
            }
        }
        if let lowSpeedBytesPerSecond, !(0...(1 << 30)).contains(lowSpeedBytesPerSecond) {
            throw InputRefusal(pointer: "/lowSpeedBytesPerSecond", reason: "must be within 0...1073741824")
        }
    }

    private static func secret(_ secret: Secret, _ pointer: String) throws(InputRefusal) {
        try text(secret.given, pointer)
        try wellFormed(secret, pointer)
    }

    private static func wellFormed(_ secret: Secret, _ pointer: String) throws(InputRefusal) {
        guard secret.isWellFormed else {
            throw InputRefusal(
                pointer: pointer, reason: "must be env: and a variable's name, or file: and an absolute path")
        }
    }

    private static func text(_ text: String, _ pointer: String) throws(InputRefusal) {
        guard !text.isEmpty, text.utf8.count <= Limits.headerBytes, text.utf8.allSatisfy({ $0 >= 32 && $0 != 127 })
        else {
            throw InputRefusal(
                pointer: pointer, reason: "must be 1 to \(Limits.headerBytes) bytes without control characters")
        }
    }
}
