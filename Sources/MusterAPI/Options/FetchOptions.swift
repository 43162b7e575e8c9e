public import MusterCore

/// How the origins of a task are asked (range contract, row 38). A group has defaults, and a task has its own options.
///
/// Paths are those of the worker's machine; secrets may be references that the worker resolves.
public struct FetchOptions: Hashable, Sendable, Codable {
    /// User and password for Basic authentication, or for ftp and sftp.
    public struct Credentials: Hashable, Sendable, Codable {
        /// The user's name.
        public var user: String
        /// The password.
        public var password: Secret

        private enum CodingKeys: String, CodingKey, CaseIterable { case user, password }

        /// Credentials.
        public init(user: String, password: Secret) {
            self.user = user
            self.password = password
        }

        /// Reads credentials and refuses unknown fields.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
            user = try container.decode(String.self, forKey: .user)
            password = try container.decode(Secret.self, forKey: .password)
        }
    }

    /// PEM files of a client certificate.
    public struct Certificate: Hashable, Sendable, Codable {
        /// Path of the certificate, with its chain.
        public var certificate: String
        /// Path of its private key.
        public var key: String

        private enum CodingKeys: String, CodingKey, CaseIterable { case certificate, key }

        /// A certificate.
        public init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }

        /// Reads a certificate and refuses unknown fields.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
            certificate = try container.decode(String.self, forKey: .certificate)
            key = try container.decode(String.self, forKey: .key)
        }
    }

    /// The HTTP version that is offered.
    public enum HTTPVersion: String, Hashable, Sendable, Codable, CaseIterable {
        /// HTTP/1.1 alone.
        case http1 = "1.1"
        /// HTTP/2 where TLS agrees on it, until an origin's streams are reset repeatedly (range contract, row 23).
        case http2 = "2"
        /// HTTP/2 without asking, also in clear text (RFC 9113 §3.3).
        case priorKnowledge = "2-prior-knowledge"
    }

    /// Header fields for every request to a source.
    public var headers: [String: Secret]?
    /// `direct`, `environment`, or the URL of a proxy, with its credentials if it needs any.
    public var proxy: Secret?
    /// Cookies by name, sent to the source's own origin.
    public var cookies: [String: Secret]?
    /// Path of a file of cookies in Netscape's form.
    public var cookieFile: String?
    /// User and password.
    public var credentials: Credentials?
    /// Path of a netrc file.
    public var netrc: String?
    /// A client certificate.
    public var clientCertificate: Certificate?
    /// Path of a PEM file of authorities to trust in place of the worker's own.
    public var caFile: String?
    /// Path of a file of known hosts for sftp; the user's own when absent.
    public var knownHosts: String?
    /// Path of a private key for sftp.
    public var privateKey: String?
    /// Whether headers, cookies and password are also sent to other origins, to which redirects and resolvers lead; they are not when absent.
    public var locationTrusted: Bool?
    /// Whether a coding that an origin applied to the content (Content-Encoding) is decoded before the content is stored; it is not when
    /// absent (range contract, row 13). Expected sizes and digests are those of the decoded content.
    public var decode: Bool?
    /// The HTTP version that is offered.
    public var httpVersion: HTTPVersion?
    /// How long connecting may take, in whole seconds; 15 when absent.
    public var connectTimeoutSeconds: Int64?
    /// How long the first byte may take, in whole seconds; 60 when absent.
    public var firstByteTimeoutSeconds: Int64?
    /// How long the first byte is waited for, and the period over which the least speed is measured, if the options don't set them.
    public static let usualPatience = (firstByteSeconds: 60 as Int64, lowSpeedSeconds: 30 as Int64)
    /// The upper bound of either, in seconds: for tries that follow tries which were too short, and for a request that may be the only one.
    public static let mostPatience: Int64 = 120
    /// The least speed in bytes per second; 1024 when absent.
    public var lowSpeedBytesPerSecond: Int64?
    /// The period over which the least speed is measured, in seconds; 30 when absent.
    public var lowSpeedSeconds: Int64?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case headers, proxy, cookies, cookieFile, credentials, netrc, clientCertificate, caFile, knownHosts, privateKey,
            locationTrusted, decode, httpVersion, connectTimeoutSeconds, firstByteTimeoutSeconds,
            lowSpeedBytesPerSecond,
            lowSpeedSeconds
    }

    /// No options.
    public init() {}

    /// Reads options and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        headers = try container.decodeIfPresent([String: Secret].self, forKey: .headers)
        proxy = try container.decodeIfPresent(Secret.self, forKey: .proxy)
        cookies = try container.decodeIfPresent([String: Secret].self, forKey: .cookies)
        cookieFile = try container.decodeIfPresent(String.self, forKey: .cookieFile)
        credentials = try container.decodeIfPresent(Credentials.self, forKey: .credentials)
        netrc = try container.decodeIfPresent(String.self, forKey: .netrc)
        clientCertificate = try container.decodeIfPresent(Certificate.self, forKey: .clientCertificate)
        caFile = try container.decodeIfPresent(String.self, forKey: .caFile)
        knownHosts = try container.decodeIfPresent(String.self, forKey: .knownHosts)
        privateKey = try container.decodeIfPresent(String.self, forKey: .privateKey)
        locationTrusted = try container.decodeIfPresent(Bool.self, forKey: .locationTrusted)
        decode = try container.decodeIfPresent(Bool.self, forKey: .decode)
        httpVersion = try container.decodeIfPresent(HTTPVersion.self, forKey: .httpVersion)
        connectTimeoutSeconds = try container.integerIfPresent(Int64.self, forKey: .connectTimeoutSeconds)
        firstByteTimeoutSeconds = try container.integerIfPresent(Int64.self, forKey: .firstByteTimeoutSeconds)
        lowSpeedBytesPerSecond = try container.integerIfPresent(Int64.self, forKey: .lowSpeedBytesPerSecond)
        lowSpeedSeconds = try container.integerIfPresent(Int64.self, forKey: .lowSpeedSeconds)
    }

    /// The same options for a try while another source may bring the chunk too: the sources are tried in rounds, and the first byte has
    /// to come within half of the usual limit, doubled with each round up to `mostPatience`, unless the options set the limit.
    public func withPatience(inRound round: Int32) -> FetchOptions {
        var brisk = self
        brisk.firstByteTimeoutSeconds =
            firstByteTimeoutSeconds
            ?? min((Self.usualPatience.firstByteSeconds / 2) << Int64(min(max(round, 0), 8)), Self.mostPatience)
        return brisk
    }

    /// The same options for a try that follows `tries` tries which ended at these limits. Each earlier try doubles both limits, unless the
    /// options set them, up to `mostPatience`. An origin that always takes the same long time can then answer.
    public func withPatience(after tries: Int32) -> FetchOptions {
        var patient = self
        let (factor, usual) = (Int64(1) << min(max(tries, 0), 8), Self.usualPatience)
        patient.firstByteTimeoutSeconds =
            firstByteTimeoutSeconds ?? min(usual.firstByteSeconds * factor, Self.mostPatience)
        patient.lowSpeedSeconds = lowSpeedSeconds ?? min(usual.lowSpeedSeconds * factor, Self.mostPatience)
        return patient
    }

    /// The options of a task over the defaults of its group. Headers and cookies are merged by name, without regard to
    /// case for headers; everything else is replaced.
    public func over(_ defaults: FetchOptions) -> FetchOptions {
        var merged = defaults
        if let headers {
            let mine = Set(headers.keys.map { $0.lowercased() })
            merged.headers = (defaults.headers ?? [:]).filter { !mine.contains($0.key.lowercased()) }
                .merging(headers) { _, own in own }
        }
        if let cookies { merged.cookies = (defaults.cookies ?? [:]).merging(cookies) { _, own in own } }
        merged.proxy = proxy ?? defaults.proxy
        merged.cookieFile = cookieFile ?? defaults.cookieFile
        merged.credentials = credentials ?? defaults.credentials
        merged.netrc = netrc ?? defaults.netrc
        merged.clientCertificate = clientCertificate ?? defaults.clientCertificate
        merged.caFile = caFile ?? defaults.caFile
        merged.knownHosts = knownHosts ?? defaults.knownHosts
        merged.privateKey = privateKey ?? defaults.privateKey
        merged.locationTrusted = locationTrusted ?? defaults.locationTrusted
        merged.decode = decode ?? defaults.decode
        merged.httpVersion = httpVersion ?? defaults.httpVersion
        merged.connectTimeoutSeconds = connectTimeoutSeconds ?? defaults.connectTimeoutSeconds
        merged.firstByteTimeoutSeconds = firstByteTimeoutSeconds ?? defaults.firstByteTimeoutSeconds
        merged.lowSpeedBytesPerSecond = lowSpeedBytesPerSecond ?? defaults.lowSpeedBytesPerSecond
        merged.lowSpeedSeconds = lowSpeedSeconds ?? defaults.lowSpeedSeconds
        return merged
    }
}
