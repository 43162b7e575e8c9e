public import MusterCore

/// One try to deliver an event: the request, and the limits of the receiver's answer.
public struct WebhookRequest: Sendable {
    /// The receiver's URL; `http` or `https`, without credentials. Redirects are not followed: they are answers like any other.
    public var url: String
    /// Header fields, the signature among them.
    public var headers: [(name: String, value: String)]
    /// The body: the same bytes in every try (I9).
    public var body: [UInt8]
    /// The limit on the whole exchange.
    public var timeout: Duration
    /// How much of the answer's body is read; a longer one is cut.
    public var answerLimit: ByteCount
}

/// A receiver's answer. Its body is ignored.
public struct WebhookAnswer: Hashable, Sendable {
    /// The status code.
    public var status: Int
    /// The Retry-After field, as it came.
    public var retryAfter: String?
    /// The Date field, as it came: the receiver's clock, which an absolute Retry-After is to be compared with.
    public var date: String?

    /// An answer with these fields.
    public init(status: Int, retryAfter: String? = nil, date: String? = nil) {
        self.status = status
        self.retryAfter = retryAfter
        self.date = date
    }
}

/// How a try ended.
public enum WebhookOutcome: Hashable, Sendable {
    /// The head of an answer came in time.
    case answered(WebhookAnswer)
    /// No answer came. The reason is given in words without secrets.
    case failed(String)
    /// The coordinator cut the try short; the receiver may have seen it or not.
    case cancelled
}

/// Carries a request to a receiver, if its address is allowed. Cancelling the task cuts it short.
public typealias WebhookSend = @Sendable (WebhookRequest) async -> WebhookOutcome
