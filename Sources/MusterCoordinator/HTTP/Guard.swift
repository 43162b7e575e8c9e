import Crypto
import FoundationEssentials
import HTTPTypes
import Hummingbird
import Logging
import MusterAPI
import NIOHTTP1

/// What a route is for, and so which token opens it.
enum Access: Sendable {
    /// Everything but what workers do.
    case admin
    /// What workers do; the admin token opens it too.
    case worker
}

/// Compares tokens so that the timing does not tell how much of a token was right: it compares digests of equal length, in
/// constant time.
struct TokenCheck: Sendable {
    /// What stands before a token, in lower case.
    private static let scheme = "bearer "

    private let admin: SHA256Digest?
    private let worker: SHA256Digest?

    init(admin: String?, worker: String?) {
        self.admin = admin.map { SHA256.hash(data: Data($0.utf8)) }
        self.worker = worker.map { SHA256.hash(data: Data($0.utf8)) }
    }

    /// Throws a problem when the Authorization field doesn't open the access.
    func check(_ authorization: String?, for access: Access) throws(Problem) {
        // Without tokens the coordinator listens on loopback alone; `CoordinatorConfiguration.check` ensures that.
        guard let admin else { return }
        // The name of the scheme has no case (RFC 9110 §11.1).
        guard let authorization, authorization.prefix(Self.scheme.count).lowercased() == Self.scheme else {
            throw Problem(.unauthorized, "send an Authorization header with a bearer token")
        }
        let given = SHA256.hash(data: Data(authorization.dropFirst(Self.scheme.count).drop { $0 == " " }.utf8))
        // Both comparisons are made whatever the first one says.
        let isAdmin = given == admin
        let isWorker = worker.map { given == $0 } ?? false
        switch access {
        case .admin:
            if isAdmin { return }
            if isWorker { throw Problem(.forbidden, "the worker token does not allow this") }
        case .worker:
            if isAdmin || isWorker { return }
        }
        throw Problem(.unauthorized, "the token is not valid")
    }
}

/// Lets requests through that the token allows.
struct AccessMiddleware<Context: RequestContext>: RouterMiddleware {
    let check: TokenCheck
    let access: Access

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        try check.check(request.headers[.authorization], for: access)
        return try await next(request, context)
    }
}

/// Turns every error into a problem document, and counts requests and failures.
struct ProblemMiddleware<Context: RequestContext>: RouterMiddleware {
    let own: OwnProcess
    let metrics: CoordinatorMetrics
    let logger: Logger

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        metrics.add(.requests)
        do {
            return try await metrics.time(.requests) { try await next(request, context) }
        } catch let error as HTTPParserError {
            // Bytes that are not HTTP: nothing after them can be read. The server answers 400 and hangs up.
            throw error
        } catch {
            var problem = Problem(error)
            if problem.code == .databaseUnavailable, let trouble = own.databaseTrouble() {
                problem = Problem(.databaseUnavailable, trouble)
            }
            if problem.status >= 500 { metrics.add(.failures) }
            if Problem.isLogged(error) {
                // The path is logged without its query; headers and bodies are not: they may hold secrets.
                logger.error(
                    "request failed",
                    metadata: [
                        CoordinatorMetadata.request: "\(request.method.rawValue) \(request.uri.path)",
                        CoordinatorMetadata.error: "\(error)",
                    ])
            }
            return Answer.problem(problem)
        }
    }
}
