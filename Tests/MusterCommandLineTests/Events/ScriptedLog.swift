import FoundationEssentials
import MusterAPI
import MusterCore
import Synchronization

/// The server behind the client's `send` in these tests: a log, a group and a record of the requests.
///
/// The client takes its transport as a function by design, so only that function is imitated here. Real coordinators take part in the
/// end-to-end tests.
final class ScriptedLog: Sendable {
    /// Everything that requests can ask about.
    struct State: Sendable {
        /// The events, positions ascending.
        var events: [EventDocument] = []
        /// The end of the log.
        var end: Int64 = 0
        /// The log's name.
        var log = "first"
        /// The position of the oldest event that is kept.
        var oldest: Int64 = 1
        /// The group as each successive read finds it; the last document stays.
        var looks: [GroupDocument] = []
        /// The tasks in trouble.
        var troubled: [TaskDocument] = []
        /// The tasks of the group.
        var tasks: [TaskDocument] = []
        /// The events of the submission of the group, before it is answered. Until then there is no group; nil if there is one from the start.
        var submission: [EventDocument]?
        /// The consumer's position.
        var place: Int64 = 0
        /// Whether another process holds the consumer.
        var isHeld = false
        /// The requests so far, as methods and paths with their queries.
        var requests: [String] = []
        /// Whether a consumer that has read everything is told to stop, as if its task had been cancelled.
        var endsConsumers = true
    }

    private let state: Mutex<State>

    init(_ state: State) {
        self.state = Mutex(state)
    }

    /// The requests so far.
    var requests: [String] { state.withLock(\.requests) }

    /// The consumer's position.
    var place: Int64 { state.withLock(\.place) }

    /// Changes the state.
    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

    /// A client over this script.
    func client() -> MusterClient {
        MusterClient(servers: ["http://script"], token: nil) { [self] request in try answer(request) }
    }

    /// Answers a request.
    func answer(_ request: APIRequest) throws -> APIResponse {
        try state.withLock { state in
            do {
                return APIResponse(status: 200, body: try Self.answer(request, &state))
            } catch let problem as Problem {
                return APIResponse(status: problem.status, body: Array(try JSONEncoder().encode(problem)))
            }
        }
    }

    private static func answer(_ request: APIRequest, _ state: inout State) throws -> [UInt8] {
        let path = String(request.url.dropFirst("http://script".count))
        if path == "/healthz" { return [] }
        state.requests.append("\(request.method) \(path)")
        let query = Dictionary(
            path.split(separator: "?").dropFirst().joined().split(separator: "&").map { part in
                let words = part.split(separator: "=", maxSplits: 1)
                return (String(words[0]), words.count > 1 ? String(words[1]) : "")
            }, uniquingKeysWith: { $1 })
        if path.hasPrefix("/v1/consumers/"), path.split(separator: "?")[0].hasSuffix("/holder") {
            guard request.method == "PUT" else { return [] }
            if state.isHeld { throw Problem(.conflict, "another process deals with the events of the consumer \"c\"") }
            return Array(try JSONEncoder().encode(ConsumerHoldDocument(name: "c", until: Samples.moment)))
        }
        if query["trouble"] == "true" {
            return Array(try JSONEncoder().encode(Page(items: state.troubled, next: nil)))
        }
        if request.method == "POST", path == "/v1/groups", let submission = state.submission {
            state.events += submission
            state.end = submission.last?.position ?? state.end
            state.submission = nil
            return Array(try JSONEncoder().encode(state.looks.removeFirst()))
        }
        if path.hasPrefix("/v1/groups?") {
            return Array(try JSONEncoder().encode(Page<GroupDocument>(items: [], next: nil)))
        }
        if path.hasPrefix("/v1/workers") {
            return Array(try JSONEncoder().encode(Page(items: [Samples.worker], next: nil)))
        }
        if path.contains("/tasks?") { return Array(try JSONEncoder().encode(Page(items: state.tasks, next: nil))) }
        if path.hasSuffix("/explanation") {
            let explanation = GroupExplanationDocument(
                group: state.looks[0], summary: "", next: nil, waits: [], slowestOrigin: nil, criticalPath: [],
                eta: .init(seconds: nil, because: ""), at: Samples.moment)
            return Array(try JSONEncoder().encode(explanation))
        }
        if path.hasPrefix("/v1/groups/") {
            guard state.submission == nil else { throw Problem(.groupNotFound, "no such group") }
            let look = state.looks[0]
            if state.looks.count > 1 { state.looks.removeFirst() }
            return Array(try JSONEncoder().encode(look))
        }
        if path.hasSuffix("/ack"), case .bytes(let body) = request.body {
            let wish = try JSONDecoder().decode(AcknowledgementRequest.self, from: Data(body))
            if let log = wish.log, log != state.log { throw Problem(.otherLog, "it is another log") }
            let position = wish.position
            state.place = max(state.place, position)
            let document = ConsumerDocument(
                name: "c", position: state.place, behind: state.end - state.place, acknowledgedAt: Samples.moment)
            return Array(try JSONEncoder().encode(document))
        }
        if let log = query["log"], log != state.log { throw Problem(.otherLog, "it is another log") }
        let after = path.hasPrefix("/v1/consumers/") ? state.place : Int64(query["after"] ?? "") ?? state.oldest - 1
        if after < state.oldest - 1 {
            throw Problem(.eventsGone, "not kept any more", oldest: state.oldest)
        }
        let subject = query["group"].map { "groups/\($0)" }
        let found = state.events.filter { $0.position > after && (subject == nil || $0.subject == subject) }
            .prefix(Int(query["limit"] ?? "") ?? 100)
        if path.hasPrefix("/v1/consumers/"), state.endsConsumers, after >= state.end { throw CancellationError() }
        let next = found.isEmpty ? max(after, state.end) : found.last?.position ?? after
        return Array(try JSONEncoder().encode(EventsDocument(items: Array(found), next: next, log: state.log)))
    }
}
