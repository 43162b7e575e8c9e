import FoundationEssentials
import MusterAPI
import Synchronization

/// The transport of the client in these tests: scripted answers by URL prefix, and a record of the requests.
///
/// The client takes its transport as a function by design, so this imitates nothing but that function.
final class Script: Sendable {
    /// A server's reaction to a request.
    enum Reaction: Sendable {
        /// Answers.
        case answer(Int, String)
        /// Answers with a problem document.
        case problem(Problem)
        /// The server takes the request, and the connection breaks.
        case unreachable
        /// The connection is refused.
        case refused
        /// No answer comes before the request's timeout.
        case silent
        /// The caller was cancelled meanwhile.
        case cancelled
    }

    private let reactions: Mutex<[String: Reaction]>
    private let record = Mutex<[APIRequest]>([])

    init(_ reactions: [String: Reaction]) {
        self.reactions = Mutex(reactions)
    }

    /// Changes a server's reaction from now on.
    func set(_ server: String, _ reaction: Reaction) {
        reactions.withLock { $0[server] = reaction }
    }

    /// The requests so far.
    var requests: [APIRequest] { record.withLock { $0 } }

    /// The URLs of the requests so far.
    var urls: [String] { requests.map(\.url) }

    /// The last request's value of a header field.
    func header(_ name: String) -> String? {
        requests.last?.headers.last { $0.name == name }?.value
    }

    /// The last request's body, if it was sent whole.
    var body: String? {
        guard case .bytes(let bytes) = requests.last?.body else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The client's transport.
    var send: APISend {
        { [self] request in
            record.withLock { $0.append(request) }
            let reaction = reactions.withLock { all in
                all.first { request.url.hasPrefix($0.key) }?.value
            }
            switch reaction {
            case .answer(let status, let body): return APIResponse(status: status, body: Array(body.utf8))
            case .problem(let problem):
                return APIResponse(status: problem.status, body: Array(try JSONEncoder().encode(problem)))
            case .cancelled: throw CancellationError()
            case .silent: throw Unreachable("\(request.url) says nothing", isTimeout: true)
            case .refused: throw Unreachable("\(request.url) refuses", isRefused: true)
            case .unreachable, nil: throw Unreachable("\(request.url) is not there")
            }
        }
    }

    /// A client of some servers over this script.
    func client(_ servers: [String], token: String? = nil) -> MusterClient {
        MusterClient(servers: servers, token: token, send: send)
    }
}
