import MusterCore

extension TaskRequest {
    /// A task of one URL as people type it. User and password in the URL become credentials of the task, which are not shown.
    public init(typed url: String) {
        let parts = Self.parts(url)
        self.init(urls: [parts.url])
        guard let userInfo = parts.userInfo else { return }
        let words = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(Self.decoded)
        // The password may look like a reference, and never is one.
        let password = Secret("value:" + (words.count > 1 ? words[1] : ""))
        fetch = FetchOptions()
        fetch?.credentials = FetchOptions.Credentials(user: words[0], password: password)
    }

    /// A URL as it may be shown, even if it is malformed.
    public static func shown(_ url: String) -> String {
        // A password with a slash in it extends beyond the authority.
        guard let start = authorityStart(url), let at = url.utf8.lastIndex(of: UInt8(ascii: "@")), start <= at
        else { return url }
        return "\(url[..<start])…\(url[at...])"
    }

    /// A URL without its user information (RFC 3986 §3.2.1), and the user information.
    private static func parts(_ url: String) -> (url: String, userInfo: Substring?) {
        guard let start = authorityStart(url) else { return (url, nil) }
        let authority = url.utf8[start...].prefix { !"/?#".utf8.contains($0) }
        guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return (url, nil) }
        return ("\(url[..<start])\(url[url.utf8.index(after: at)...])", url[start..<at])
    }

    /// Where the authority begins. Bytes are compared: a delimiter with a combining mark behind it is another of Swift's characters, and
    /// would hide a password.
    private static func authorityStart(_ url: String) -> String.Index? {
        url.utf8.firstRange(of: "://".utf8)?.upperBound
    }

    private static func decoded(_ text: Substring) -> String { PercentEncoding.decode(text) ?? String(text) }
}
