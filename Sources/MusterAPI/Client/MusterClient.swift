import FoundationEssentials
import MusterCore
import Synchronization

/// The typed client of a coordinator's HTTP API, over an injected `send`.
///
/// With several servers the client stays with a server as long as it answers, and goes on to the next when it is unreachable or stopping. A
/// silent server has a few seconds; if no server answers in that time, all are asked again with the full timeout. A change is sent only
/// after a server has answered a probe, and the probes continue until its answer. Every request may be repeated (I10), at the next server
/// too. Every call throws `Problem` when the coordinator refuses, `Unreachable` when no server answers, and `UnexpectedAnswer` otherwise.
public final class MusterClient: Sendable {
    private let servers: [String]
    /// Sends a request with its server's token.
    private let send: APISend
    /// Carries out a request by sending it to the servers, as often as it decides.
    private let pass: Pass
    private let current: Current

    /// How long an answer may take, in addition to the wait that the request itself asks for.
    public static let answerTime = Duration.seconds(30)
    /// How much of that time a server has while other servers may answer sooner.
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
        pass = { try await $1($0) }
        current = Current()
    }

    /// A client of coordinators that have one token, or none.
    public convenience init(servers: [String], token: String?, send: @escaping APISend) {
        self.init(servers: servers, tokens: .common(token), send: send)
    }

    /// A copy of a client whose requests go through another `pass`.
    private init(_ other: MusterClient, pass: @escaping Pass) {
        (servers, send, current, self.pass) = (other.servers, other.send, other.current, pass)
    }

    /// The server that answered last, shared by a client and all clients made from it, so that a silent server costs seconds only once.
    private final class Current: Sendable {
        let server = Mutex(0)
    }

    /// Carries out a request: `send` sends it to the servers, and its URL is the path.
    public typealias Pass = @Sendable (_ request: APIRequest, _ send: APISend) async throws -> APIResponse

    /// The same client, whose requests go through `pass` alone: it calls `send` as often as it decides.
    public func passing(_ pass: @escaping Pass) -> MusterClient { MusterClient(self, pass: pass) }

    /// The same client, which asks each server only once.
    public var once: MusterClient { passing { try await $1($0) } }

    /// Sends a request to the first server that answers and decodes its JSON.
    func call<Answer: Decodable>(
        _ method: String, _ path: String, query: [(String, String?)] = [], body: APIRequest.Body = .none,
        headers: [(name: String, value: String)] = [], timeout: Duration? = answerTime, inSession: Bool = false,
        as type: Answer.Type
    ) async throws -> Answer {
        try await exchange(
            method, path, query: query, body: body, headers: headers, timeout: timeout, inSession: inSession
        ).document(type)
    }

    /// The final answer of a server.
    struct Reply {
        /// The request, as messages show it.
        let question: String
        /// The body of a 2xx; `nil` if a repeated removal found nothing to remove.
        var body: [UInt8]?
        /// Whether the request may have been carried out before, so that this answer does not tell everything that it did.
        let isRepeated: Bool

        /// The body's JSON.
        func document<Answer: Decodable>(_ type: Answer.Type) throws -> Answer {
            do {
                return try JSONDecoder().decode(Answer.self, from: Data(body ?? []))
            } catch {
                let reason = (error as? DecodingError).map { InputRefusal($0).description } ?? "\(error)"
                throw UnexpectedAnswer("\(question): the answer is not what was expected: \(reason)")
            }
        }
    }

    /// The JSON of a request's body. It is the same each time, since a repetition is recognized by it too.
    static func json(_ value: some Encodable) throws -> APIRequest.Body {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return .bytes(Array(try encoder.encode(value)))
    }

    /// Sends a request to the first server that answers.
    ///
    /// - Parameter removes: whether the request counts as done if a repetition after a lost answer finds nothing to remove.
    @discardableResult
    func exchange(
        _ method: String, _ path: String, query: [(String, String?)] = [], body: APIRequest.Body = .none,
        headers: [(name: String, value: String)] = [], timeout: Duration? = answerTime, inSession: Bool = false,
        removes: Bool = false
    ) async throws -> Reply {
        let manner: APIRequest.Manner = method == "GET" ? .read : inSession ? .session : .change
        let question = "\(method) \(path)"
        if manner == .change {
            // Makes sure that a server answers: a server that hangs could make the change much later, when it is no longer wanted.
            _ = try await pass(
                APIRequest(
                    method: "GET", url: Self.probePath, headers: [], body: .none, timeout: Self.answerTime,
                    manner: .probe)
            ) { try await self.round($0) }
        }
        let isLost = Mutex(false)
        var headers = headers + Self.defaultHeaders(body)
        // The key identifies repetitions, and requests that arrive late.
        if manner == .change, !headers.contains(where: { $0.name == Self.idempotencyKey }) {
            headers.append((Self.idempotencyKey, RandomToken.make()))
        }
        let request = APIRequest(
            method: method, url: path + Self.queryString(query), headers: headers, body: body, timeout: timeout,
            manner: manner)
        let answer = try await pass(request) { request in
            try await self.round(request) { isLost.withLock { $0 = true } }
        }
        let isRepeated = isLost.withLock { $0 }
        if removes, isRepeated, let problem = answer.problem, problem.status == 404 {
            return Reply(question: question, body: nil, isRepeated: true)
        }
        return Reply(question: question, body: try Self.check(answer, question), isRepeated: isRepeated)
    }

    /// Asks the servers in turn until one answers.
    ///
    /// - Parameter lost: called when the answer was lost and a change may have been made.
    private func round(_ request: APIRequest, lost: () -> Void = {}) async throws -> APIResponse {
        let first = current.server.withLock { $0 }
        var turns = servers.indices.map { Turn(server: (first + $0) % servers.count, timeout: request.timeout) }
        if request.method == "GET", servers.count > 1, let timeout = request.timeout, timeout >= Self.answerTime {
            for place in turns.indices { turns[place].timeout = timeout - Self.answerTime + Self.firstAnswerTime }
        }
        var failure: (any Error)?
        var next = 0
        while next < turns.count {
            let turn = turns[next]
            next += 1
            do {
                var asked = request
                asked.url = servers[turn.server] + request.url
                asked.timeout = turn.timeout
                let answer = try await request.manner == .change ? attend(asked, at: servers[turn.server]) : send(asked)
                if let problem = answer.problem {
                    if problem.status == 503 { throw problem }
                } else if answer.status >= 502 {
                    // A proxy answered, not a coordinator: the same as an unreachable server.
                    throw Unreachable("\(request.method) \(request.url): status \(answer.status)")
                } else if !Self.isOfCoordinator(answer, request.manner) {
                    // Other failures outweigh this one: a coordinator that is away may come back.
                    failure =
                        failure
                        ?? UnexpectedAnswer(
                            "\(request.method) \(asked.url): what answers there (status \(answer.status)) is no coordinator"
                        )
                    continue
                }
                current.server.withLock { $0 = turn.server }
                return answer
            } catch var error as Unreachable {
                if request.manner == .change, !error.isRefused {
                    error.mayBeDone = true
                    lost()
                }
                // A coordinator's own problem outweighs this failure: that coordinator can serve the request later, whatever the others do.
                if !(failure is Problem) { failure = error }
                // The server may be slow while the others are away: it is asked again with the full timeout.
                if error.isTimeout, turn.timeout != request.timeout {
                    turns.append(Turn(server: turn.server, timeout: request.timeout))
                }
            } catch let problem as Problem where problem.status == 503 {
                failure = problem
            }
        }
        current.server.withLock { $0 = servers.isEmpty ? 0 : (first + 1) % servers.count }
        throw failure ?? Unreachable("there is no server")
    }

    /// Asks a server for a change, and watches the server meanwhile.
    private func attend(_ request: APIRequest, at server: String) async throws -> APIResponse {
        let patience = servers.count > 1 ? Self.firstAnswerTime : Self.answerTime
        let probe = APIRequest(
            method: "GET", url: server + Self.probePath, headers: [], body: .none, timeout: patience, manner: .probe)
        return try await Attendance(send: send, probe: probe, patience: patience).answer(to: request)
    }

    /// Whether a coordinator may have sent this answer, which is no problem document. A page instead comes from another program that listens there.
    private static func isOfCoordinator(_ answer: APIResponse, _ manner: APIRequest.Manner) -> Bool {
        // A proxy in front of the coordinator may forward only /v1.
        if manner == .probe { return true }
        guard (200..<300).contains(answer.status) else { return false }
        return answer.body.first.map { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") } ?? true
    }

    /// The path that every coordinator answers at once, whatever state its database is in.
    private static let probePath = "/healthz"

    /// A server that is asked, and how long it may take.
    private struct Turn {
        let server: Int
        var timeout: Duration?
    }

    /// The header field with the idempotency key.
    private static let idempotencyKey = "Idempotency-Key"

    /// The header field for the caller's idempotency key, if it gave one.
    static func headers(key: String?) -> [(name: String, value: String)] { key.map { [(idempotencyKey, $0)] } ?? [] }

    private static func defaultHeaders(_ body: APIRequest.Body) -> [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = [("Accept", "application/json")]
        switch body {
        case .none: break
        case .bytes: headers.append(("Content-Type", "application/json"))
        case .stream: headers.append(("Content-Type", "application/x-ndjson"))
        }
        return headers
    }

    private static func check(_ answer: APIResponse, _ question: String) throws -> [UInt8] {
        guard !(200..<300).contains(answer.status) else { return answer.body }
        if let problem = answer.problem { throw problem }
        throw UnexpectedAnswer("\(question): status \(answer.status) without a problem document")
    }

    private static func queryString(_ query: [(String, String?)]) -> String {
        let items = query.compactMap { name, value in
            value.map { "\(name)=\(PercentEncoding.encodeSegment($0))" }
        }
        return items.isEmpty ? "" : "?" + items.joined(separator: "&")
    }
}
