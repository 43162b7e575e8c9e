import FoundationEssentials
import MusterCore
import Synchronization

/// The typed client of a coordinator's HTTP API, over an injected `send`.
///
/// With several servers it stays with one as long as that answers, and goes on to the next when it is unreachable or stopping.
/// Every call throws `Problem` when the coordinator refuses, `Unreachable` when none answers, `UnexpectedAnswer` otherwise.
public final class MusterClient: Sendable {
    private let servers: [String]
    private let token: String?
    private let send: APISend
    private let current = Mutex(0)

    /// A client of one or more coordinators of the same database.
    ///
    /// - Parameters:
    ///   - servers: base URLs such as `http://127.0.0.1:7300`; at least one.
    ///   - token: the bearer token; a secret.
    public init(servers: [String], token: String?, send: @escaping APISend) {
        self.servers = servers.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        self.token = token
        self.send = send
    }

    /// Sends a request to the first server that answers and decodes its JSON.
    func call<Answer: Decodable>(
        _ method: String, _ path: String, query: [(String, String?)] = [], body: APIRequest.Body = .none,
        headers: [(name: String, value: String)] = [], timeout: Duration? = .seconds(30), as type: Answer.Type
    ) async throws -> Answer {
        let bytes = try await exchange(method, path, query: query, body: body, headers: headers, timeout: timeout)
        do {
            return try JSONDecoder().decode(Answer.self, from: Data(bytes))
        } catch {
            throw UnexpectedAnswer("\(method) \(path): the answer is not the JSON that was expected: \(error)")
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
        headers: [(name: String, value: String)] = [], timeout: Duration? = .seconds(30)
    ) async throws -> [UInt8] {
        guard !servers.isEmpty else { throw Unreachable("there is no server") }
        let first = current.withLock { $0 }
        // A stream can be sent once only: it has been read when the first server fails.
        let tries = if case .stream = body { 1 } else { servers.count }
        var failure: any Error = Unreachable("no server was asked")
        for offset in 0..<tries {
            let index = (first + offset) % servers.count
            do {
                let request = APIRequest(
                    method: method, url: servers[index] + path + Self.queryString(query),
                    headers: headers + defaultHeaders(body), body: body, timeout: timeout)
                let answer = try Self.check(try await send(request), method, path)
                current.withLock { $0 = index }
                return answer
            } catch let error as Unreachable {
                failure = error
            } catch let problem as Problem where problem.status == 503 {
                failure = problem
            }
        }
        current.withLock { $0 = (first + 1) % servers.count }
        throw failure
    }

    private func defaultHeaders(_ body: APIRequest.Body) -> [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = [("Accept", "application/json")]
        if let token { headers.append(("Authorization", "Bearer \(token)")) }
        switch body {
        case .none: break
        case .bytes: headers.append(("Content-Type", "application/json"))
        case .stream: headers.append(("Content-Type", "application/x-ndjson"))
        }
        return headers
    }

    private static func check(_ answer: APIResponse, _ method: String, _ path: String) throws -> [UInt8] {
        guard !(200..<300).contains(answer.status) else { return answer.body }
        if let problem = try? JSONDecoder().decode(Problem.self, from: Data(answer.body)) { throw problem }
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
