import FoundationEssentials

/// A request of the typed client, for whatever HTTP client carries it.
public struct APIRequest: Sendable {
    /// The body of a request.
    public enum Body: Sendable {
        /// No body.
        case none
        /// A whole body.
        case bytes([UInt8])
        /// A body of any length, pulled as the server takes it.
        case stream(AsyncThrowingStream<[UInt8], any Error>)
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

    /// A request.
    public init(
        method: String, url: String, headers: [(name: String, value: String)], body: Body, timeout: Duration?
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.timeout = timeout
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
