import CLibcurl

// Cookies, and what a redirect must not carry to another origin (range contract, row 20). libcurl itself keeps
// credentials and the fields Authorization and Cookie at the first origin. It does not keep other fields there, nor the
// text of CURLOPT_COOKIE, nor the entry of a netrc file for the same host.
extension Transfer {
    func setCookies() {
        if let cookies = request.cookies { easy.set(CURLOPT_COOKIE, cookies) }
        // An empty name turns the cookie engine on without cookies. Without redirects its cookies would never be sent.
        if let file = request.cookieFile {
            easy.set(CURLOPT_COOKIEFILE, file)
        } else if request.maxRedirects > 0 {
            easy.set(CURLOPT_COOKIEFILE, "")
        }
    }

    /// Called before the request of a hop, once its URL is known. The caller's fields and cookies stay with the first
    /// origin, and none of the engine's cookies goes from https to http, not even those that their origin did not mark
    /// secure. What was left out once stays left out, also on a redirect back.
    func keepSecretsAtHome() {
        guard fileScheme == nil, easy.integer(CURLINFO_REDIRECT_COUNT) > 0 else { return }
        let home = URLOrigin(request.url)
        let here = URLOrigin(easy.string(CURLINFO_EFFECTIVE_URL))
        if !request.trustsRedirects, here == nil || here != home {
            if request.cookies != nil { easy.clear(CURLOPT_COOKIE) }
            if !request.originHeaders.fields.isEmpty { easy.set(CURLOPT_HTTPHEADER, headerLines(atHome: false)) }
        }
        let isTLS = here?.scheme == "https"
        if lastHopWasTLS ?? (home?.scheme == "https"), !isTLS { easy.set(CURLOPT_COOKIELIST, "ALL") }
        lastHopWasTLS = isTLS
    }

    /// Called when a redirect's head is complete. libcurl looks into the netrc file before it connects, so that it must be
    /// told before it follows; from then on the file is not used any more.
    func keepNetrcOffCleartext(_ targets: [String?]) {
        guard request.netrcFile != nil, URLOrigin(easy.string(CURLINFO_EFFECTIVE_URL))?.scheme == "https" else {
            return
        }
        let leadsToTLS = targets.allSatisfy { $0.flatMap { URLOrigin($0) }?.scheme == "https" }
        if !leadsToTLS { easy.set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue)) }
    }

    /// Whether libcurl may answer a challenge: the first one, with credentials that were not sent before, or one for a
    /// stale nonce (RFC 7616 §3.3). The head is kept until that is known.
    func isAnswerable(_ head: HeadCollector) -> Bool {
        guard request.authentication == .onChallenge, head.status == 401, challenges < Self.mostChallenges else {
            return false
        }
        let fields = head.headers.all("WWW-Authenticate").map { $0.lowercased() }
        return challenges == 0
            ? !fields.isEmpty : fields.contains { $0.contains("stale=true") || $0.contains("stale=\"true\"") }
    }

    /// Whether a challenge is waiting for libcurl's answer.
    var isChallenged: Bool {
        guard case .redirecting = phase else { return false }
        return challenges > 0 && collector.status == 401
    }

    private static let mostChallenges = 2

    /// The targets of the head's redirect, one per Location, since libcurl may take any of them; nil for a Location that can't be read.
    var redirectTargets: [String?] {
        let base = easy.string(CURLINFO_EFFECTIVE_URL)
        return collector.headers.all("Location").map { URLOrigin.absolute($0, relativeTo: base) }
    }
}
