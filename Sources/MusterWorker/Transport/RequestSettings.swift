import MusterAPI
import MusterCore
import MusterCurl

/// What all requests of one lease have in common: its options with every secret in the clear (range contract, rows 33, 36, 38). Never logged.
struct RequestSettings: Sendable {
    /// The request without what a single question adds.
    private let template: TransferRequest
    private let httpVersion: FetchOptions.HTTPVersion?
    /// Texts that must not be shown anywhere.
    private let confidences: [String]

    /// Header fields that only Muster sets: a caller's would contradict what the answer is judged by.
    private static let ownFields: Set<String> = [
        "range", "if-range", "if-none-match", "if-modified-since", "accept-encoding", "connection", "content-length",
        "transfer-encoding",
    ]

    /// The settings for one source. Blocks if files have to be read for them (`readsFiles`).
    ///
    /// - Parameters:
    ///   - url: the source's URL.
    ///   - headers: the source's own header fields, as they are; they win over those of the options.
    ///   - options: the task's options over its group's.
    ///   - version: the version of the program, for User-Agent.
    ///   - caFile: the authorities that the worker trusts if the options name none.
    ///   - secrets: reads what the options refer to.
    init(
        url: String,
        headers: [String: String] = [:],
        options: FetchOptions? = nil,
        version: String,
        caFile: String? = nil,
        secrets: SecretStore = SecretStore()
    ) throws(SecretRefusal) {
        let options = options ?? FetchOptions()
        // If redirects may take secrets anywhere, only those are read that any origin may receive.
        let trustsRedirects = options.locationTrusted == true
        let secrets = trustsRedirects ? secrets : secrets.sending(to: url)
        var request = TransferRequest(url: url)
        request.trustsRedirects = trustsRedirects
        let scheme = url.prefix { $0 != ":" }.lowercased()
        let isHTTP = scheme == "http" || scheme == "https" || !Self.otherSchemes.contains(scheme)
        request.allowedSchemes = isHTTP ? ["http", "https"] : [scheme]
        if isHTTP {
            request.userAgent = "muster/\(version)"
            for field in try Self.merged(headers, over: options.headers ?? [:], secrets) {
                if Self.ownFields.contains(field.name.lowercased()) { continue }
                request.originHeaders.append(field.name, field.value)
            }
            request.cookies = try Self.cookies(options.cookies ?? [:], secrets)
            request.cookieFile = try Self.file(options.cookieFile, secrets)
        }
        request.proxy = try Self.proxy(options.proxy, secrets)
        if let credentials = options.credentials {
            request.credentials = "\(credentials.user):\(try secrets.text(of: credentials.password))"
        }
        request.netrcFile = try Self.file(options.netrc, secrets)
        if let certificate = options.clientCertificate {
            request.clientCertificate = ClientCertificate(
                certificatePath: try secrets.file(certificate.certificate),
                keyPath: try secrets.file(certificate.key)
            )
        }
        // The worker's own file is its operator's choice, wherever it is.
        request.caFile = try Self.file(options.caFile, secrets) ?? caFile
        request.knownHostsFile = try Self.file(options.knownHosts, secrets)
        request.privateKeyFile = try Self.file(options.privateKey, secrets)
        request.connectTimeout = .seconds(options.connectTimeoutSeconds ?? 15)
        request.firstByteTimeout = .seconds(
            options.firstByteTimeoutSeconds ?? FetchOptions.usualPatience.firstByteSeconds)
        let leastSpeed = options.lowSpeedBytesPerSecond ?? 1 << 10
        if leastSpeed > 0 {
            request.lowSpeed = LowSpeedLimit(
                bytesPerSecond: leastSpeed,
                over: .seconds(options.lowSpeedSeconds ?? FetchOptions.usualPatience.lowSpeedSeconds)
            )
        }
        request.maxRedirects = 10
        template = request
        httpVersion = options.httpVersion
        confidences = Self.confidences(of: request)
    }

    /// Schemes for which HTTP's fields and redirects have no meaning (row 37).
    private static let otherSchemes: Set<String> = ["ftp", "ftps", "sftp"]

    /// Whether the options leave open which version of HTTP is spoken.
    var leavesVersionOpen: Bool { httpVersion == nil }

    /// Whether header fields are sent at all.
    var isHTTP: Bool { template.allowedSchemes.contains("http") }

    /// Whether a proxy may open the connections to the origin, whose addresses are then not seen here.
    var isProxied: Bool { template.proxy != .direct }

    /// A request for the source, before a question is added.
    ///
    /// - Parameters:
    ///   - isFirst: whether nothing is known of the content yet. Ranges of a large file are better off with a connection each: they
    ///     share no flow-control window and no failure (row 23). A first request shares a connection where it can.
    ///   - fellBack: whether the origin kept resetting its HTTP/2 streams.
    ///   - refusesHTTP1: whether the origin may speak HTTP/2 alone.
    func request(isFirst: Bool = false, fellBack: Bool = false, refusesHTTP1: Bool = false) -> TransferRequest {
        var request = template
        request.httpVersion =
            switch httpVersion {
            case .priorKnowledge: .priorKnowledge
            case .http1: .http1
            case .http2: fellBack ? .http1 : refusesHTTP1 ? .http2AfterRefusal : .http2OverTLS
            case nil where fellBack: .http1
            case nil: refusesHTTP1 ? .http2AfterRefusal : isFirst ? .http2OverTLS : .http1
            }
        return request
    }

    /// A text about a request, without its secrets: origins may repeat what they are sent, and failures quote what origins say.
    func withoutSecrets(_ text: String) -> String {
        confidences.reduce(text) { $0.replacing($1, with: "•••") }
    }

    /// The values of fields and cookies, and every password. Longer ones come first, since one may be part of another. Short ones may occur in any text and
    /// are left out.
    private static func confidences(of request: TransferRequest) -> [String] {
        var texts = request.originHeaders.fields.map(\.value)
        texts += (request.cookies ?? "").split(separator: "; ").map { String($0.drop { $0 != "=" }.dropFirst()) }
        texts += (request.credentials ?? "").split(separator: ":", maxSplits: 1).dropFirst().map { String($0) }
        if case .url(let url) = request.proxy, let end = url.lastIndex(of: "@") {
            let userInfo = url[..<end].split(separator: "/").last ?? ""
            texts += [String(userInfo)] + userInfo.split(separator: ":", maxSplits: 1).dropFirst().map { String($0) }
        }
        let leastBytes = 6
        return texts.filter { $0.utf8.count >= leastBytes }.sorted { $0.utf8.count > $1.utf8.count }
    }

    /// Whether making settings of these options blocks.
    static func readsFiles(_ options: FetchOptions?) -> Bool {
        guard let options else { return false }
        let paths = [
            options.cookieFile, options.netrc, options.caFile, options.knownHosts, options.privateKey,
            options.clientCertificate?.certificate,
        ]
        var secrets = Array((options.headers ?? [:]).values) + Array((options.cookies ?? [:]).values)
        if let proxy = options.proxy { secrets.append(proxy) }
        if let credentials = options.credentials { secrets.append(credentials.password) }
        return paths.contains { $0 != nil } || secrets.contains(where: \.isInFile)
    }

    /// The fields of both, by name; names are compared without case.
    static func merged(
        _ headers: [String: String],
        over defaults: [String: Secret],
        _ secrets: SecretStore
    ) throws(SecretRefusal) -> [HeaderField] {
        let given = Set(headers.keys.map { $0.lowercased() })
        var fields = headers.map { HeaderField($0.key, $0.value) }
        for (name, secret) in defaults where !given.contains(name.lowercased()) {
            fields.append(HeaderField(name, try secrets.text(of: secret)))
        }
        return fields.sorted { $0.name < $1.name }
    }

    /// The path of a file that an option names, if the worker may read it.
    static func file(_ path: String?, _ secrets: SecretStore) throws(SecretRefusal) -> String? {
        guard let path else { return nil }
        return try secrets.file(path)
    }

    private static func cookies(_ cookies: [String: Secret], _ secrets: SecretStore) throws(SecretRefusal) -> String? {
        var pairs: [String] = []
        for (name, secret) in cookies.sorted(by: { $0.key < $1.key }) {
            let value = try secrets.text(of: secret)
            // A semicolon would begin another cookie (RFC 6265 §4.1.1).
            guard !value.utf8.contains(UInt8(ascii: ";")) else {
                throw SecretRefusal(reference: "the cookie \(name)", reason: "has a semicolon in its value")
            }
            pairs.append("\(name)=\(value)")
        }
        return pairs.isEmpty ? nil : pairs.joined(separator: "; ")
    }

    private static func proxy(_ proxy: Secret?, _ secrets: SecretStore) throws(SecretRefusal) -> ProxyChoice {
        guard let proxy else { return .direct }
        return switch try secrets.text(of: proxy) {
        case "direct": .direct
        case "environment": .environment
        case let url: .url(url)
        }
    }
}
