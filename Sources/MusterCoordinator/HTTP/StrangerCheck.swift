import FoundationEssentials
import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore

/// Refuses requests that web pages can make a user's browser send (docs/adr/0019-pages-and-strangers.md): requests for
/// another host (DNS rebinding), requests of pages from elsewhere, and bodies that a page can send without being allowed
/// to.
///
/// The check comes before that of the tokens, and replaces it where a coordinator on loopback has no tokens.
struct StrangerCheck: Sendable {
    private let listen: HostName?
    private let names: Set<HostName>

    /// The check of a coordinator that listens on a host, and has further names.
    init(listenHost: String, names: [String]) {
        listen = HostName(listening: listenHost)
        self.names = Set(names.compactMap { HostName($0) })
    }

    /// Throws a problem when the request is meant for another host, or comes from a page of another host.
    ///
    /// - Parameters:
    ///   - authority: the Host field.
    ///   - origins: the Origin fields, which browsers send with every request that may change something.
    func check(authority: String?, origins: [String]) throws(Problem) {
        guard let authority, !authority.isEmpty else {
            throw Problem(.foreignHost, "the request names no host: send the Host field, with HTTP/1.0 too")
        }
        guard let (host, port) = HostName.split(Substring(authority)), accepts(host) else {
            throw Problem(
                .foreignHost,
                "the request is for \"\(authority)\"; a coordinator of that name has --host for it")
        }
        for origin in origins {
            guard isOwn(origin, host, port) else {
                throw Problem(.foreignOrigin, "pages of \"\(origin)\" may not ask this coordinator")
            }
        }
    }

    /// Whether a request for the host is one for this coordinator.
    private func accepts(_ host: HostName) -> Bool {
        if names.contains(host) || host == listen { return !host.isWildcard }
        guard let listen, !listen.isLoopback else { return host.isLoopback }
        // A coordinator that listens on all addresses accepts any address: only a name can be pointed elsewhere by its owner.
        return listen.isWildcard && host.isAddress
    }

    /// Whether a page is the coordinator's own: from the requested host and port, or from one of the configured names.
    private func isOwn(_ origin: String, _ host: HostName, _ port: UInt16?) -> Bool {
        let parts: (rest: Substring, port: UInt16)
        if origin.hasPrefix("http://") {
            parts = (origin.dropFirst("http://".count), 80)
        } else if origin.hasPrefix("https://") {
            parts = (origin.dropFirst("https://".count), 443)
        } else {
            return false
        }
        guard let page = HostName.split(parts.rest) else { return false }
        if names.contains(page.host) { return true }
        return page.host == host && (page.port ?? parts.port) == (port ?? parts.port)
    }
}

/// The form of a body. A page can't send either form to another host without asking first (Fetch, "CORS-safelisted").
enum BodyForm: String, Sendable {
    /// One JSON document.
    case document = "application/json"
    /// One JSON document per line.
    case lines = "application/x-ndjson"
}

extension Request {
    /// The form of the body; `nil` when the request has none.
    ///
    /// - Throws: a problem when there is a body, and its type is not accepted.
    var bodyForm: BodyForm? {
        get throws(Problem) {
            let type = headers[.contentType].map {
                $0.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
            }
            if let form = type.flatMap(BodyForm.init(rawValue:)) { return form }
            guard !hasBody else {
                throw Problem(
                    .unsupportedMediaType, "send application/json, or application/x-ndjson where lines are taken")
            }
            return nil
        }
    }
}

/// Lets requests through that no foreign page can have sent.
struct StrangerMiddleware<Context: RequestContext>: RouterMiddleware {
    let check: StrangerCheck

    /// Paths that disclose nothing, and that load balancers request without knowing the coordinator's name.
    private static var open: Set<String> { ["/healthz", "/readyz"] }

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        if !Self.open.contains(request.uri.path) {
            try check.check(authority: request.head.authority, origins: request.headers[values: .origin])
        }
        _ = try request.bodyForm
        return try await next(request, context)
    }
}
