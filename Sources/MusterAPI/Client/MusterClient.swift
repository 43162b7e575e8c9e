import FoundationEssentials
import MusterCore
import Synchronization

/// The typed client of a coordinator's HTTP API, over an injected `send`.
///
/// With several servers it stays with one as long as that answers, and goes on to the next when it is unreachable or stopping. One that
/// says nothing has a few seconds where the request only reads; if none answers in that time, they are asked again, and waited for.
/// Every call throws `Problem` when the coordinator refuses, `Unreachable` when none answers, `UnexpectedAnswer` otherwise.
public final class MusterClient: Sendable {
    private let servers: [String]
    /// Shows each server its token.
    private let send: APISend
    private let current = Mutex(0)

    /// How long an answer may take, beside what the request itself waits for.
    public static let answerTime = Duration.seconds(30)
    /// How much of that a server has while there are others that may answer sooner.
    static let firstAnswerTime = Duration.seconds(4)

    /// A client of one or more coordinators of the same database.
    ///
    /// - Parameters:
    ///   - servers: base URLs such as `http://127.0.0.1:7300`; at least one.
    ///   - tokens: the bearer tokens; secrets.
    public init(servers: [String], tokens: ServerTokens, send: @escaping APISend) {
        self.servers = servers.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        let shown = ShownTokens(servers: servers, tokens: tokens)
        self.send = { request in
            var request = request
            if let token = shown.token(for: request.url) {
                request.headers.append(("Authorization", "Bearer \(token)"))
            }
            return try await send(request)
        }
    }

    /// A client of coordinators that have one token, or none.
    public convenience init(servers: [String], token: String?, send: @escaping APISend) {
        self.init(servers: servers, tokens: .common(token), send: send)
    }

    /// The same client with another way to send.
    private init(_ other: MusterClient, send: @escaping APISend) {
        servers = other.servers
        self.send = send
    }

    /// The same client, whose requests go through `pass`: it sends them by `send`, as often as it likes.
    public func passing(
        _ pass: @escaping @Sendable (_ request: APIRequest, _ send: APISend) async throws -> APIResponse
    ) -> MusterClient {
        MusterClient(self) { [send] request in try await pass(request, send) }
    }

    /// Sends a request to the first server that answers and decodes its JSON.
    func call<Answer: Decodable>(
        _ method: String, _ path: String, query: [(String, String?)] = [], body: APIRequest.Body = .none,
        headers: [(name: String, value: String)] = [], timeout: Duration? = answerTime, as type: Answer.Type
    ) async throws -> Answer {
        let bytes = try await exchange(method, path, query: query, body: body, headers: headers, timeout: timeout)
        do {
            return try JSONDecoder().decode(Answer.self, from: Data(bytes))
        } catch {
            let reason = (error as? DecodingError).map { InputRefusal($0).description } ?? "\(error)"
            throw UnexpectedAnswer("\(method) \(path): the answer is not what was expected: \(reason)")
        }
    }

    /// The JSON of a request's body.
    static func json(_ value: some Encodable) throws -> APIRequest.Body {
        .bytes(Array(try JSONEncoder().encode(value)))
    }

    /// Sends a request to the first server that answers and returns the body of a 2xx.
    @discardableResult
    func exchange(
        _ method: String, _ path: String, query: [(String, String?)] = [], body: APIRequest.Body = .none,
        headers: [(name: String, value: String)] = [], timeout: Duration? = answerTime
    ) async throws -> [UInt8] {
        guard !servers.isEmpty else { throw Unreachable("there is no server") }
        if method != "GET", timeout.map({ $0 > Self.answerTime }) ?? true {
            // What may take minutes is asked of a server that answers: one that hangs would be waited for as long.
            try await exchange("GET", "/healthz")
        }
        let first = current.withLock { $0 }
        // A stream can be sent once only: it has been read when the first server fails.
        let tries = if case .stream = body { 1 } else { servers.count }
        var turns = (0..<tries).map { Turn(server: (first + $0) % servers.count, timeout: timeout) }
        if method == "GET", servers.count > 1, let timeout, timeout >= Self.answerTime {
            for place in turns.indices { turns[place].timeout = timeout - Self.answerTime + Self.firstAnswerTime }
        }
        var failure: any Error = Unreachable("no server was asked")
        var next = 0
        while next < turns.count {
            let turn = turns[next]
            next += 1
            do {
                let request = APIRequest(
                    method: method, url: servers[turn.server] + path + Self.queryString(query),
                    headers: headers + Self.defaultHeaders(body), body: body, timeout: turn.timeout)
                let answer = try Self.check(try await send(request), method, path)
                current.withLock { $0 = turn.server }
                return answer
            } catch let error as Unreachable {
                failure = error
                // It may only be slow, and the others may be away.
                if error.isTimeout, turn.timeout != timeout {
                    turns.append(Turn(server: turn.server, timeout: timeout))
                }
            } catch let problem as Problem where problem.status == 503 {
                failure = problem
            }
        }
        current.withLock { $0 = (first + 1) % servers.count }
        throw failure
    }

    /// A server that is asked, and how long it may take.
    private struct Turn {
        let server: Int
        var timeout: Duration?
    }

    private static func defaultHeaders(_ body: APIRequest.Body) -> [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = [("Accept", "application/json")]
        switch body {
        case .none: break
        case .bytes: headers.append(("Content-Type", "application/json"))
        case .stream: headers.append(("Content-Type", "application/x-ndjson"))
        }
        return headers
    }

    private static func check(_ answer: APIResponse, _ method: String, _ path: String) throws -> [UInt8] {
        guard !(200..<300).contains(answer.status) else { return answer.body }
        if let problem = answer.problem { throw problem }
        // A proxy in between, not a coordinator: as good as nobody there.
        if answer.status >= 502 { throw Unreachable("\(method) \(path): status \(answer.status)") }
        throw UnexpectedAnswer("\(method) \(path): status \(answer.status) without a problem document")
    }

    private static func queryString(_ query: [(String, String?)]) -> String {
        let items = query.compactMap { name, value in
            value.map { "\(name)=\(PercentEncoding.encodeSegment($0))" }
        }
        return items.isEmpty ? "" : "?" + items.joined(separator: "&")
    }
}
