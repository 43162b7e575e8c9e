public import MusterCore

/// One try to deliver an event: what is posted, and what the receiver is given to answer.
public struct WebhookRequest: Sendable {
    /// Where to; `http` or `https`, without credentials. Redirects are not followed: they are answers like any other.
    public var url: String
    /// Header fields, the signature among them.
    public var headers: [(name: String, value: String)]
    /// The body: the same bytes in every try (I9).
    public var body: [UInt8]
    /// How long everything may take together.
    public var timeout: Duration
    /// How much of the answer's body is read; a longer one is cut.
    public var answerLimit: ByteCount
}

/// What a receiver answered: of its body nothing matters.
public struct WebhookAnswer: Hashable, Sendable {
    /// The status code.
    public var status: Int
    /// The Retry-After field, as it came.
    public var retryAfter: String?
    /// The Date field, as it came: the receiver's clock, which an absolute Retry-After is to be compared with.
    public var date: String?

    /// An answer.
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
    /// None came; why, in words without secrets.
    case failed(String)
    /// The try was cut short from here; the receiver may have seen it or not.
    case cancelled
}

/// Carries a request to a receiver, if its address is allowed. Cancelling the task cuts it short.
public typealias WebhookSend = @Sendable (WebhookRequest) async -> WebhookOutcome
