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
        guard let start = url.firstRange(of: "://")?.upperBound, let at = url.utf8.lastIndex(of: UInt8(ascii: "@")),
            start <= at
        else { return url }
        return "\(url[..<start])…\(url[at...])"
    }

    /// A URL without its user information (RFC 3986 §3.2.1), and the user information.
    private static func parts(_ url: String) -> (url: String, userInfo: Substring?) {
        guard let start = url.firstRange(of: "://")?.upperBound else { return (url, nil) }
        let authority = url[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard let at = authority.lastIndex(of: "@") else { return (url, nil) }
        return ("\(url[..<start])\(url[url.index(after: at)...])", authority[..<at])
    }

    private static func decoded(_ text: Substring) -> String { PercentEncoding.decode(text) ?? String(text) }
}
