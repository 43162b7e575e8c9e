extension ScriptedOrigin {
    /// How long a signed URL is good for (21, 22).
    public struct Lifetime: Sendable, Hashable {
        /// This many requests; nil is any number.
        public var requests: Int?
        /// Until this many bytes of body were sent by it; nil is any number.
        public var bytes: Int64?

        /// Makes a lifetime; it ends with whichever comes first.
        public init(requests: Int? = nil, bytes: Int64? = nil) {
            self.requests = requests
            self.bytes = bytes
        }

        /// Until ``ScriptedOrigin/expireSignatures(of:)``.
        public static let unlimited = Lifetime()
        /// One request.
        public static let once = Lifetime(requests: 1)
    }

    /// Makes a path answer only to signed URLs, and only to GET: any other request is refused with a status.
    ///
    /// - Parameters:
    ///   - lifetime: How long each URL of ``signedURL(_:)``, of a resolver or of a redirect is good for.
    ///   - refusal: 401, 403 or 410 (21).
    public func sign(_ path: String, lifetime: Lifetime = .unlimited, refusal: Int = 403) {
        state.update { $0.signatures.policies[path] = .init(lifetime: lifetime, refusal: refusal) }
    }

    /// A fresh URL of a path that is signed.
    public func signedURL(_ path: String) -> String { url + state.update { $0.signatures.issue(path) } }

    /// Ends the lifetime of every URL of a path that was signed so far.
    public func expireSignatures(of path: String) {
        state.update { $0.signatures.expire(path) }
    }

    /// The URLs that were signed, and what is left of their lifetimes.
    struct Signatures: Sendable {
        struct Policy: Sendable {
            let lifetime: Lifetime
            let refusal: Int
        }

        private struct Grant: Sendable {
            let path: String
            var lifetime: Lifetime
        }

        var policies: [String: Policy] = [:]
        private var grants: [String: Grant] = [:]
        private var issued: UInt64 = 0

        /// The target of a fresh URL.
        mutating func issue(_ path: String) -> String {
            issued += 1
            let signature = String(SeededGenerator.mix(issued), radix: 16)
            grants[signature] = Grant(path: path, lifetime: policies[path]?.lifetime ?? .unlimited)
            return "\(path)?signature=\(signature)"
        }

        mutating func expire(_ path: String) {
            grants = grants.filter { $0.value.path != path }
        }

        /// The status with which a request is refused; nil if it is not, and then it is counted.
        mutating func refusal(of request: OriginRequest) -> Int? {
            guard let policy = policies[request.path] else { return nil }
            guard request.method == "GET", let signature = request.parameter("signature"),
                var grant = grants[signature], grant.path == request.path,
                grant.lifetime.requests.map({ $0 > 0 }) ?? true, grant.lifetime.bytes.map({ $0 > 0 }) ?? true
            else { return policy.refusal }
            if let left = grant.lifetime.requests { grant.lifetime.requests = left - 1 }
            grants[signature] = grant
            return nil
        }

        /// Counts bytes that were sent by a signed URL.
        mutating func spend(_ bytes: Int64, by signature: String?) {
            guard let signature, let left = grants[signature]?.lifetime.bytes else { return }
            grants[signature]?.lifetime.bytes = left - bytes
        }
    }
}
