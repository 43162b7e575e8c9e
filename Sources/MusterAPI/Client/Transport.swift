import FoundationEssentials

/// A request of the typed client, independent of the HTTP client that carries it.
public struct APIRequest: Sendable {
    /// The body of a request.
    public enum Body: Sendable {
        /// No body.
        case none
        /// A whole body.
        case bytes([UInt8])
        /// A body of any length, made anew each time it is sent, and produced as the server takes it.
        case stream(@Sendable () -> AsyncThrowingStream<[UInt8], any Error>)
    }

    /// What it means for a request to get no answer.
    public enum Manner: Sendable {
        /// It has no effect, however often it is sent: it only reads.
        case read
        /// It has no effect either: it asks whether a server is up, before a change.
        case probe
        /// The change may have been made. The carrier must not send the request twice by itself, since the client would not know of the first time.
        case change
        /// A worker sends a new request in its place.
        case session
    }

    /// The method.
    public var method: String
    /// The absolute URL.
    public var url: String
    /// Header fields; the Authorization field is a secret.
    public var headers: [(name: String, value: String)]
    /// The body.
    public var body: Body
    /// How long the whole exchange may take; `nil` for streams, which have no bound.
    public var timeout: Duration?
    /// What it means for the request to get no answer.
    public var manner: Manner

    /// A request.
    public init(
        method: String, url: String, headers: [(name: String, value: String)], body: Body, timeout: Duration?,
        manner: Manner = .read
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.timeout = timeout
        self.manner = manner
    }
}

/// The answer that the HTTP client received.
public struct APIResponse: Sendable {
    /// The status code.
    public var status: Int
    /// The whole body.
    public var body: [UInt8]

    /// An answer.
    public init(status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }

    /// The problem document in the body; `nil` for a success, and for an answer that is not a coordinator's.
    public var problem: Problem? {
        (200..<300).contains(status) ? nil : try? JSONDecoder().decode(Problem.self, from: Data(body))
    }
}

/// Carries a request to a coordinator. Throws `Unreachable` when there was no answer, `CancellationError` when cancelled.
public typealias APISend = @Sendable (APIRequest) async throws -> APIResponse

/// No coordinator answered.
public struct Unreachable: Error, Sendable, CustomStringConvertible {
    /// The transport's message, without secrets.
    public let description: String
    /// Whether the request timed out, so that an answer may still come.
    public let isTimeout: Bool
    /// Whether no process listens at the address.
    public let isRefused: Bool
    /// Whether a change may have been made nevertheless: the request was sent, and its answer was lost.
    public internal(set) var mayBeDone = false

    /// A failure to reach a coordinator.
    public init(_ description: String, isTimeout: Bool = false, isRefused: Bool = false) {
        self.description = description
        self.isTimeout = isTimeout
        self.isRefused = isRefused
    }
}

/// A coordinator answered something that this client does not understand.
public struct UnexpectedAnswer: Error, Sendable, CustomStringConvertible {
    /// What was unexpected.
    public let description: String

    /// An answer that is not of the protocol.
    public init(_ description: String) {
        self.description = description
    }
}
