import CLibcurl

// Cookies, and what a redirect must not carry to another origin (range contract, row 20). libcurl itself keeps credentials at the
// first origin, and the fields Authorization and Cookie, but neither other fields, nor the text of CURLOPT_COOKIE, nor what a netrc
// file has for the same host.
extension Transfer {
    func setCookies() {
        if let cookies = request.cookies { easy.set(CURLOPT_COOKIE, cookies) }
        // An empty name turns the engine on with no cookies in it; without redirects nothing would ever leave it.
        if let file = request.cookieFile {
            easy.set(CURLOPT_COOKIEFILE, file)
        } else if request.maxRedirects > 0 {
            easy.set(CURLOPT_COOKIEFILE, "")
        }
    }

    /// Called when a hop is about to be asked for and its URL is known: the caller's fields and cookies stay with the first
    /// origin, and none of the engine's cookies goes from https to http, not even those that their origin did not call secure.
    /// What was left out once is left out for good, also of a redirect back.
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

    /// Whether libcurl may answer a head with the credentials that it has shown to nobody so far, or with those of a nonce that was stale
    /// (RFC 7616 §3.3). The head is kept until that is known.
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

    /// Where the head's redirect may lead, whichever Location libcurl takes; nil for one that can't be read.
    var redirectTargets: [String?] {
        let base = easy.string(CURLINFO_EFFECTIVE_URL)
        return collector.headers.all("Location").map { URLOrigin.absolute($0, relativeTo: base) }
    }
}
