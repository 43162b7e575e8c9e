extension HostileGallery.Specification {
    /// Redirects, and signed URLs that expire (20–22).
    static func journeys(_ size: Int64) -> [Self] {
        [
            Self(20, "redirects", "redirects three times", size: size).always(.redirectChain(hops: 3, status: 307)),
            Self(20, "redirects-for-ever", "redirects to itself", size: size)
                .always(.redirectChain(hops: .max, status: 302)).never(),
            Self(20, "redirects-to-a-file", "redirects to a file of this machine", size: size)
                .always(.redirect(to: "file:///etc/passwd", status: 302)).never(),
            Self(20, "redirects-to-ftp", "redirects to another protocol, where no server is", size: size)
                .always(.redirect(to: "ftp://127.0.0.1:1/a", status: 302)).never(),
            Self(20, "wants-its-cookie", "redirects until its cookie comes back", size: size)
                .always(.redirectForCookie(name: "seen", value: "1", status: 302)).with(\.right, .either),
            Self(21, "expires", "redirects to signed URLs that expire after a third of the file", size: size)
                .signed(.init(bytes: size / 3)),
            Self(22, "one-time", "redirects to signed URLs that are good for one request", size: size)
                .signed(.once),
            Self(22, "one-time-itself", "refuses the second request", size: size).later(.status(403, retryAfter: nil))
                .with(\.right, .either),
        ]
    }

    private func signed(_ lifetime: ScriptedOrigin.Lifetime) -> Self {
        always(.redirectToSigned(signedPath, status: 302)).with(\.lifetime, lifetime)
    }

    /// Limits and failures of an origin, and its slowness (24–26, 32, 33).
    static func limits(_ size: Int64) -> [Self] {
        let refusals: [(name: String, refusal: ScriptedOrigin.Refusal, word: String)] = [
            ("403", 403, "403"), ("404", 404, "404"), ("429", 429, "429"), ("503", 503, "503"),
            ("reset", .reset, "a reset"),
        ]
        let limited = refusals.map { refusal in
            Self(24, "limits-by-\(refusal.name)", "refuses a second request at a time by \(refusal.word)", size: size)
                .always(.limit(responses: 1, otherwise: refusal.refusal))
        }
        let failing = [408, 500, 502, 503, 504, 520, 524].map { status in
            Self(26, "fails-by-\(status)", "answers \(status) twice", size: size)
                .first(2, .status(status, retryAfter: nil))
        }
        return limited + failing + [
            Self(25, "retry-later", "answers 429 once, with Retry-After in seconds", size: size)
                .first(1, .status(429, retryAfter: "1")),
            Self(25, "retry-at", "answers 503 once, with Retry-After as a date a second later than Date", size: size)
                .first(1, .status(503, retryAfter: ScriptedOrigin.Header.date("", secondsSince1970: 1001).value))
                .first(1, .date(ScriptedOrigin.Header.date("", secondsSince1970: 1000).value)),
            Self(26, "missing", "answers 404", size: size).always(.status(404, retryAfter: nil)).never(),
            Self(32, "drips", "sends ten bytes a second", size: size)
                .always(.drip(bytes: 1, every: .milliseconds(100))).never().with(\.isSlow, true),
            Self(32, "stops", "stops in the middle once, with the connection open", size: size)
                .first(1, .hang(afterBytes: size / 2)).with(\.isSlow, true),
            Self(33, "silent", "takes the request, and says nothing", size: size)
                .always(.hangBeforeHeaders).never().with(\.isSlow, true),
        ]
    }

    /// False statements of an origin, and its demand for a password (27, 34, 35, 38).
    static func lies(_ size: Int64) -> [Self] {
        let content = Self(35, "states-its-digest", "", size: size).content
        let other = ScriptedOrigin.Content.bytes([])
        return [
            Self(27, "page", "sends a page of HTML with 200", size: size).always(.htmlErrorPage).never()
                .with(\.needsDigest, true),
            Self(27, "page-later", "sends a page of HTML with 200 from the second request on", size: size)
                .first(1, .truncated(afterBytes: size / 2)).later(.htmlErrorPage).with(\.behavesAfter, nil)
                .with(\.right, .refusal),
            Self(34, "escapes", "suggests the name ../escaped", size: size)
                .always(.headers([.disposition(filename: "../escaped")])),
            Self(34, "escapes-in-full", "suggests the name /tmp/escaped", size: size)
                .always(.headers([.disposition(extendedFilename: "/tmp/escaped")])),
            Self(35, "states-its-digest", "states its digest, and sends a wrong byte once", size: size)
                .always(.headers([.reprDigest(of: content, .sha256)])).first(1, .corruptByte(at: size / 2)),
            Self(35, "states-another-digest", "states the digest of another file", size: size)
                .always(.headers([.reprDigest(of: other, .sha256)])).never(),
            Self(35, "corrupts", "sends a wrong byte all the time", size: size)
                .always(.corruptByte(at: size / 2)).never().with(\.needsDigest, true),
            Self(38, "wants-a-password", "wants a user and a password, which the URL has", size: size)
                .always(.requires(.basic(user: "user", password: "secret")))
                .with(\.credentials, "user:secret@"),
            Self(38, "wants-another-password", "wants another password than the URL has", size: size)
                .always(.requires(.basic(user: "user", password: "secret"))).never()
                .with(\.credentials, "user:guess@"),
        ]
    }

    /// An origin with a certificate that no client should trust (36).
    static func certificate(_ identity: TestCertificates.Identity, size: Int64) -> Self {
        let title =
            switch identity {
            case .trusted: "has a good certificate"
            case .otherAuthority: "has a certificate of an unknown authority"
            case .expired: "has a certificate that has expired"
            case .wrongHost: "has a certificate for another host"
            case .selfSigned: "has a certificate that it signed itself"
            }
        return Self(36, "certificate-\(identity.rawValue)", title, size: size).never()
    }
}
