extension FailureKind {
    /// What a failure is, for people: the status with which an origin refused, or otherwise the kind in words, with the status of the
    /// answer that was rejected.
    ///
    /// `404 Not Found`, `wrong size (status 200)`
    ///
    /// - Parameters:
    ///   - isDecided: whether the failure is final. If not, the next try decides whether the body that came is the file.
    ///   - detail: what was seen, if it is known.
    public func title(status: Int?, isDecided: Bool, detail: String = "") -> String {
        if case .httpStatus(let status) = self, status >= 300 { return Self.phrase(status) }
        // A status below 400 does not say what is wrong.
        if let status, status >= 400 { return Self.phrase(status) }
        return words(isDecided, detail) + (status.map { " (status \($0))" } ?? "")
    }

    /// A failure in words: what it is, the source if it concerns one, and what was seen if that adds anything. Each fact appears once.
    ///
    /// `404 Not Found from https://example.org/a`, `403 Forbidden from https://example.org/b, with a range and without one`
    public func text(status: Int?, source: String?, detail: String, isDecided: Bool) -> String {
        var title =
            isOfStorage && Self.isOfQuota(detail)
            ? "quota used up" : title(status: status, isDecided: isDecided, detail: detail)
        let kind = words(isDecided, detail)
        let detail = detail.hasPrefix("\(kind): ") ? String(detail.dropFirst(kind.count + 2)) : detail
        if let status, status < 400, detail.contains("answered \(status)") { title = words(isDecided) }
        if let source, !isOfStorage { title += "\(self == .proxy ? " for" : " from") \(source)" }
        if self == .network, let (place, reason) = Self.unconnected(detail) {
            let what = reason ?? self.title(status: status, isDecided: isDecided)
            guard let source else { return "\(what): \(place)" }
            // A redirect leads to another host than the source's.
            let host = place.prefix { $0 != " " }
            return source.firstRange(of: host) == nil ? "\(what): \(place), for \(source)" : "\(what): \(source)"
        }
        if self == .dns, let name = Self.unresolved(detail) { return source == nil ? "\(title): \(name)" : title }
        guard let status, status >= 400, detail.hasSuffix("the origin answered \(status)") else {
            return detail.isEmpty ? title : "\(title): \(detail)"
        }
        let asked = detail.dropLast("the origin answered \(status)".count)
        if asked.isEmpty { return title }
        // Several answers are listed one by one.
        guard asked.hasSuffix(": "), !asked.contains(";") else { return "\(title): \(detail)" }
        return "\(title), \(asked.dropLast(2))"
    }

    /// Whether the detail ends with the system's message for a used-up quota, however much room the disk has: EDQUOT in the words of glibc, musl or Darwin.
    public static func isOfQuota(_ detail: String) -> Bool { detail.lowercased().hasSuffix("quota exceeded") }

    /// The place to which libcurl could not connect, such as `127.0.0.1 port 80`, and the system's reason, such as `connection refused`.
    /// The rest of the text adds nothing, and neither does the way of asking.
    private static func unconnected(_ detail: String) -> (place: Substring, reason: String?)? {
        let pattern = /^(?:[^;]*: )?not connected: Failed to connect to (\S+ port \d+)[^;:]*: ([^;:]+)$/
        guard let (_, place, reason) = detail.firstMatch(of: pattern)?.output else { return nil }
        if reason.hasSuffix("connect to server") { return (place, nil) }
        return (place, reason.prefix(1).lowercased() + reason.dropFirst())
    }

    /// The host that libcurl could not resolve; the rest of its sentence adds nothing.
    private static func unresolved(_ detail: String) -> Substring? {
        detail.firstMatch(of: /^(?:[^;]*: )?name not resolved: Could not resolve host: ([^\s:;]+)$/)?.output.1
    }

    /// The kind, for people. If an answer came and was refused for its content, the words don't say that a connection failed.
    private func words(_ isDecided: Bool, _ detail: String = "") -> String {
        switch self {
        case .network where detail.contains("states no other validator, and"): Self.httpStatus(200).words(isDecided)
        case .network: "connection failed"
        case .tls: "no secure connection"
        case .dns: "host not found"
        case .proxy: "proxy failed"
        case .timeout: "no answer in time"
        case .tooSlow: "too slow"
        case .httpStatus(let status) where status < 300:
            isDecided ? "not the file" : "not known whether it is the file"
        case .httpStatus(let status): Self.phrase(status)
        case .badRange: "unusable answer"
        case .changed: "file keeps changing"
        case .digestMismatch: "wrong digest"
        case .sizeMismatch: "wrong size"
        case .refusedAddress where detail.contains("unsupported scheme: "): "unsupported scheme"
        case .refusedAddress: "address not permitted"
        case .authentication: "no credentials"
        case .notFound: "not found"
        case .storageFull: "disk full"
        case .noSpace: "no room for the file"
        case .noPermission: "can't be written there"
        case .storage: "file not stored"
        case .poison: "workers kept dying"
        case .deadline: "deadline passed"
        case .unreadable: "stored data not readable"
        }
    }

    /// A status with its reason phrase, for the statuses that origins send when something is wrong (RFC 9110 §15, RFC 6585, RFC 8470).
    private static func phrase(_ status: Int) -> String {
        let meaning: String? =
            switch status {
            case 400: "Bad Request"
            case 401: "Unauthorized"
            case 403: "Forbidden"
            case 404: "Not Found"
            case 405: "Method Not Allowed"
            case 407: "Proxy Authentication Required"
            case 408: "Request Timeout"
            case 410: "Gone"
            case 412: "Precondition Failed"
            case 416: "Range Not Satisfiable"
            case 425: "Too Early"
            case 429: "Too Many Requests"
            case 500: "Internal Server Error"
            case 501: "Not Implemented"
            case 502: "Bad Gateway"
            case 503: "Service Unavailable"
            case 504: "Gateway Timeout"
            case 511: "Network Authentication Required"
            default: nil
            }
        return meaning.map { "\(status) \($0)" } ?? "status \(status)"
    }

    /// Whether the sink failed, rather than the source of the bytes.
    private var isOfStorage: Bool {
        switch self {
        case .storageFull, .noSpace, .noPermission, .storage: true
        case .network, .tls, .dns, .proxy, .timeout, .tooSlow, .httpStatus, .badRange, .changed, .digestMismatch,
            .sizeMismatch, .refusedAddress, .authentication, .notFound, .poison, .deadline, .unreadable:
            false
        }
    }
}
