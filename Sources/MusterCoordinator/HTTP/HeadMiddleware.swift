import HTTPTypes
import Hummingbird
import MusterAPI

/// Refuses requests whose heads HTTP itself does not allow, or that expect what the coordinator does not do, on every path.
struct HeadMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        try request.checkHead()
        return try await next(request, context)
    }
}

extension Request {
    /// The only expectation that HTTP defines: the peer waits for 100 (Continue) before it sends the body.
    static let continueExpectation = "100-continue"

    /// What the peer expects (RFC 9110 §10.1.1), in lower case.
    var expectations: [String] {
        headers[values: .expect].flatMap { $0.split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
            .filter { !$0.isEmpty }
    }

    /// Whether a body follows the head.
    var hasBody: Bool {
        headers[.transferEncoding] != nil || headers[.contentLength].map { !$0.allSatisfy { $0 == "0" } } ?? false
    }

    /// Throws a problem when the request names no host or several (RFC 9112 §3.2), or has an expectation that is not known.
    fileprivate func checkHead() throws(Problem) {
        // `VersionHandler` gives an empty Host to a request of HTTP/1.1 that has none. A proxy in between may have used another
        // one of several Host fields.
        guard head.authority != "", headers[values: .furtherHost].isEmpty else {
            throw Problem(
                .invalidRequest, "send one Host field, that of the URL, such as \"Host: localhost:7300\"")
        }
        guard let unknown = expectations.first(where: { $0 != Self.continueExpectation }) else { return }
        throw Problem(
            .expectationFailed, "\"\(unknown)\" is not known; send \"Expect: 100-continue\", or no Expect field")
    }
}

extension HTTPField.Name {
    /// The Host fields after the first. The first one is the request's authority, and not among its fields.
    fileprivate static var furtherHost: Self { .init("Host")! }
}
