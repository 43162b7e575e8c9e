import FoundationEssentials
import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore

/// Refuses what pages in somebody's browser can make it send (docs/adr/0019-pages-and-strangers.md): requests for another host (DNS
/// rebinding), requests of pages from elsewhere, and bodies that a page can send without being allowed to.
///
/// It stands before the tokens, and in place of them where a coordinator on loopback has none.
struct StrangerCheck: Sendable {
    private let listen: HostName?
    private let names: Set<HostName>

    /// The check of a coordinator that listens on a host, and has further names.
    init(listenHost: String, names: [String]) {
        listen = HostName(listening: listenHost)
        self.names = Set(names.compactMap { HostName($0) })
    }

    /// Throws a problem when the request is meant for another host, or comes from a page of one.
    ///
    /// - Parameters:
    ///   - authority: the Host field.
    ///   - origins: the Origin fields, which browsers send with all that may change something.
    func check(authority: String?, origins: [String]) throws(Problem) {
        guard let authority, let (host, port) = HostName.split(Substring(authority)), accepts(host) else {
            throw Problem(
                .foreignHost,
                "the request is for \(authority.map { "\"\($0)\"" } ?? "no single host"); a coordinator of that name has --host for it"
            )
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
        // Where it listens on all addresses, any of them may be meant: only a name can be led elsewhere by its owner.
        return listen.isWildcard && host.isAddress
    }

    /// Whether a page is the coordinator's own: of the host and port that it asks, or of a name that was given for it.
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

/// What a body is made of. A page can't send either form to another host without asking first (Fetch, "CORS-safelisted").
enum BodyForm: String, Sendable {
    /// One JSON document.
    case document = "application/json"
    /// One JSON document per line.
    case lines = "application/x-ndjson"
}

extension Request {
    /// The form of the body; `nil` when the request has none.
    ///
    /// - Throws: a problem when there is a body, and its type is none that is taken.
    var bodyForm: BodyForm? {
        get throws(Problem) {
            let type = headers[.contentType].map {
                $0.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
            }
            if let form = type.flatMap(BodyForm.init(rawValue:)) { return form }
            let isEmpty = headers[.contentLength]?.allSatisfy { $0 == "0" } ?? true
            guard isEmpty, headers[.transferEncoding] == nil else {
                throw Problem(
                    .unsupportedMediaType, "send application/json, or application/x-ndjson where lines are taken")
            }
            return nil
        }
    }
}

/// Lets through what no page of a stranger can have sent.
struct StrangerMiddleware<Context: RequestContext>: RouterMiddleware {
    let check: StrangerCheck

    /// What tells nothing, and is asked by balancers that know no name of it.
    private static var open: Set<String> { ["/healthz", "/readyz"] }

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        if !Self.open.contains(request.uri.path) {
            // A second Host field stays among the others: a proxy in between may have gone by that one.
            let authority = request.headers[values: .furtherHost].isEmpty ? request.head.authority : nil
            try check.check(authority: authority, origins: request.headers[values: .origin])
        }
        _ = try request.bodyForm
        return try await next(request, context)
    }
}

extension HTTPField.Name {
    /// The first one is the request's authority, and not among its fields.
    fileprivate static var furtherHost: Self { .init("Host")! }
}
