import CLibcurl

/// Scheme, host and port of a URL, read by libcurl's own parser, so that no second reading can disagree with the one that
/// decides where a request goes.
struct URLOrigin: Hashable {
    /// Lowercase.
    let scheme: String
    /// The host as libcurl normalizes it.
    let host: String
    /// The port, or the default of the scheme.
    let port: String

    /// The origin of a URL, which may be relative to a base; nil if it cannot be read.
    init?(_ url: String, relativeTo base: String? = nil) {
        guard let handle = curl_url() else { return nil }
        defer { curl_url_cleanup(handle) }
        if let base {
            guard curl_url_set(handle, CURLUPART_URL, base, 0) == CURLUE_OK else { return nil }
        }
        guard curl_url_set(handle, CURLUPART_URL, url, UInt32(CURLU_URLENCODE)) == CURLUE_OK,
            let scheme = Self.part(CURLUPART_SCHEME, of: handle),
            let host = Self.part(CURLUPART_HOST, of: handle),
            let port = Self.part(CURLUPART_PORT, of: handle)
        else { return nil }
        self.scheme = scheme
        self.host = String(decoding: host.utf8.map(asciiLowercase), as: UTF8.self)
        self.port = port
    }

    /// The URL that a reference means, as libcurl reads it; nil if it cannot be read.
    static func absolute(_ reference: String, relativeTo base: String) -> String? {
        guard let handle = curl_url() else { return nil }
        defer { curl_url_cleanup(handle) }
        guard curl_url_set(handle, CURLUPART_URL, base, 0) == CURLUE_OK,
            curl_url_set(handle, CURLUPART_URL, reference, UInt32(CURLU_URLENCODE)) == CURLUE_OK
        else { return nil }
        return part(CURLUPART_URL, of: handle)
    }

    private static func part(_ part: CURLUPart, of handle: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(handle, part, &text, UInt32(CURLU_DEFAULT_PORT)) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}

/// User and password of a URL (RFC 3986 §3.2.1).
enum URLCredentials {
    /// The URL without credentials.
    static func removed(from url: String) -> String {
        guard let range = range(in: url) else { return url }
        return String(url[..<range.lowerBound] + url[url.utf8.index(after: range.upperBound)...])
    }

    /// The credentials as written in the URL, nil if there are none.
    static func text(of url: String) -> String? {
        range(in: url).map { String(url[$0]) }
    }

    /// The part before the `@`; the URL may lack a scheme, as the name of a proxy may.
    private static func range(in url: String) -> Range<String.Index>? {
        // Bytes: a slash with a combining mark behind it is another of Swift's characters.
        let start = url.utf8.firstRange(of: "://".utf8)?.upperBound ?? url.startIndex
        let authority = url.utf8[start...].prefix { $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
        guard let at = authority.lastIndex(of: 0x40) else { return nil }
        return start..<at
    }
}
