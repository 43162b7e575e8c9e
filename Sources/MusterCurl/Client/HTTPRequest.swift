/// A body of any length that is produced while it is sent, at the peer's pace.
public struct HTTPBodyStream: Sendable {
    /// Pushes every chunk; `push` waits while the pipe is full, and returns false once the transfer is over.
    let pump: @Sendable (_ push: @Sendable ([UInt8]) async -> Bool) async throws -> Void

    /// Sends the chunks of a sequence. The sequence should end when its task is cancelled, because ``CurlClient/send(_:)``
    /// waits for it. An error that it throws aborts the request.
    public init<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks) where Chunks.Element == [UInt8] {
        pump = { push in
            for try await chunk in chunks {
                guard await push(chunk) else { return }
            }
        }
    }
}

/// The body of an ``HTTPRequest``.
public enum HTTPBody: Sendable {
    /// No body.
    case none
    /// These bytes.
    case bytes([UInt8])
    /// A stream; without a length it is sent in chunks.
    case stream(HTTPBodyStream, length: Int64?)
}

/// A request whose response is small enough to be held in memory.
public struct HTTPRequest: Sendable {
    /// The method, for example `GET`.
    public var method: String
    /// The absolute URL, http or https.
    public var url: String
    /// Fields to send.
    public var headers: HeaderList
    /// The body to send.
    public var body: HTTPBody
    /// The most bytes that the response's body may have; more fails as ``CurlClientError/responseTooLarge(limit:)``.
    public var maxResponseBytes: Int
    /// How long name resolution, TCP and TLS may take together.
    public var connectTimeout: Duration
    /// How long the peer may take to begin its response; a long poll needs more than its polling time.
    public var responseTimeout: Duration
    /// Time limit for the whole exchange; nil for none.
    public var deadline: Duration?
    /// Whether the request gets a new connection even if an idle one exists: on a reused connection libcurl may send it
    /// twice.
    public var isAlone: Bool
    /// How many redirects to follow.
    public var maxRedirects: Int
    /// Called with the numeric address of each connection before the request goes out on it, see
    /// ``TransferRequest/addressAllowed``; nil allows all.
    public var addressAllowed: (@Sendable (_ numericAddress: String) -> Bool)?

    /// Makes a request with 8 MiB of response, 15 s to connect, 60 s to answer, no deadline, no redirects.
    public init(method: String = "GET", url: String, headers: HeaderList = [], body: HTTPBody = .none) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.maxResponseBytes = 8 * 1024 * 1024
        self.connectTimeout = .seconds(15)
        self.responseTimeout = .seconds(60)
        self.deadline = nil
        self.isAlone = false
        self.maxRedirects = 0
        self.addressAllowed = nil
    }
}

/// A whole response.
public struct HTTPResponse: Sendable, Hashable {
    /// The status code; every status is a response, none is an error.
    public var status: Int
    /// The fields in order.
    public var headers: HeaderList
    /// The body as it was sent.
    public var body: [UInt8]

    /// Makes a response.
    public init(status: Int, headers: HeaderList = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// Why there is no response.
public enum CurlClientError: Error, Sendable {
    /// The transfer failed.
    case transfer(TransferError)
    /// The response's body is larger than ``HTTPRequest/maxResponseBytes``.
    case responseTooLarge(limit: Int)
    /// The producer of the request's body threw this error.
    case bodyFailed(any Error)
    /// The task was cancelled; whether the peer acted on the request is unknown.
    case cancelled
    /// The loop is (being) shut down.
    case loopClosed
}
