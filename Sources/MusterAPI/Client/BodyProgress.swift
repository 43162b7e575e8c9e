import Synchronization

/// When something of a request's body was taken last: a long list is sent for a while, and only then is there an answer to wait for.
public final class BodyProgress: Sendable {
    /// How long nothing of a list is taken, and nothing is answered, before the request is sent once more.
    public static let usualPause = Duration.seconds(10)

    private let last = Mutex(ContinuousClock.now)

    /// Progress of a request that begins now.
    public init() {}

    /// The request, which notes here whenever something of its stream is taken.
    public func noting(_ request: APIRequest) -> APIRequest {
        guard case .stream(let make) = request.body else { return request }
        var request = request
        request.body = .stream {
            let parts = make()
            return AsyncThrowingStream {
                self.last.withLock { $0 = .now }
                var iterator = parts.makeAsyncIterator()
                return try await iterator.next()
            }
        }
        return request
    }

    /// Returns once nothing has been taken for a while; of a request without a stream, since it began.
    public func rest(for pause: Duration) async throws {
        while true {
            let idle = last.withLock { .now - $0 }
            guard idle < pause else { return }
            try await Task.sleep(for: pause - idle)
        }
    }
}
