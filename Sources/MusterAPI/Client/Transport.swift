import FoundationEssentials

/// A request of the typed client, for whatever HTTP client carries it.
public struct APIRequest: Sendable {
    /// The body of a request.
    public enum Body: Sendable {
        /// No body.
        case none
        /// A whole body.
        case bytes([UInt8])
        /// A body of any length, made anew each time that it is sent, and pulled as the server takes it.
        case stream(@Sendable () -> AsyncThrowingStream<[UInt8], any Error>)
    }

    /// What becomes of a request that gets no answer.
    public enum Manner: Sendable {
        /// Nothing, as often as it is sent: it reads.
        case read
        /// As little: it asks whether somebody is there, before something is changed.
        case probe
        /// It may have been done. What carries it must not send it twice by itself: nobody would know of the first time.
        case change
        /// A worker sends it again, in words of its own.
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
    /// How long the whole exchange may take; streams have no bound.
    public var timeout: Duration?
    /// What becomes of it without an answer.
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

/// The answer that the HTTP client brings.
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

    /// The problem document that it is; `nil` for a success, and for what no coordinator says.
    public var problem: Problem? {
        (200..<300).contains(status) ? nil : try? JSONDecoder().decode(Problem.self, from: Data(body))
    }
}

/// Carries a request to a coordinator. Throws `Unreachable` when there was no answer, `CancellationError` when cancelled.
public typealias APISend = @Sendable (APIRequest) async throws -> APIResponse

/// No coordinator answered.
public struct Unreachable: Error, Sendable, CustomStringConvertible {
    /// What the transport said, without secrets.
    public let description: String
    /// Whether the time of the request ran out, so that there may be an answer yet.
    public let isTimeout: Bool
    /// Whether nobody listens at the address.
    public let isRefused: Bool
    /// Whether something may have been changed all the same: the request was sent, and its answer lost.
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
