import CLibcurl

// Cookies, and what a redirect must not carry to another origin (range contract, row 20). libcurl itself keeps header fields and
// credentials at the first origin, but neither the text of CURLOPT_COOKIE nor what a netrc file has for the same host.
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

    /// Called when a hop is about to be asked for and its URL is known: the caller's cookies stay with the first origin,
    /// and none of the engine's goes from https to http, not even those that their origin did not call secure.
    func keepCookiesAtHome() {
        guard fileScheme == nil, easy.integer(CURLINFO_REDIRECT_COUNT) > 0 else { return }
        let home = URLOrigin(request.url)
        let here = URLOrigin(easy.string(CURLINFO_EFFECTIVE_URL))
        if request.cookies != nil, here == nil || here != home { easy.clear(CURLOPT_COOKIE) }
        let isTLS = here?.scheme == "https"
        if lastHopWasTLS ?? (home?.scheme == "https"), !isTLS { easy.set(CURLOPT_COOKIELIST, "ALL") }
        lastHopWasTLS = isTLS
    }

    /// Called when a redirect's head is complete. libcurl looks into the netrc file before it connects, so that it must be
    /// told before it follows; from then on the file is not used any more.
    func keepNetrcOffCleartext() {
        guard request.netrcFile != nil else { return }
        let base = easy.string(CURLINFO_EFFECTIVE_URL)
        guard URLOrigin(base)?.scheme == "https" else { return }
        let leadsToTLS = collector.headers.all("Location").allSatisfy {
            URLOrigin($0, relativeTo: base)?.scheme == "https"
        }
        if !leadsToTLS { easy.set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue)) }
    }
}
