import Synchronization

/// When the server last took some of a request's body. A long list takes a while to send, and an answer is due only after that.
public final class BodyProgress: Sendable {
    /// The time without progress of a list and without an answer, after which the request is sent once more.
    public static let usualPause = Duration.seconds(10)

    private let last = Mutex(ContinuousClock.now)

    /// The progress of a request that begins now.
    public init() {}

    /// The request, changed so that it records here when some of its stream is taken.
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

    /// Returns once nothing has been taken for `pause`. For a request without a stream the time counts from its beginning.
    public func rest(for pause: Duration) async throws {
        while true {
            let idle = last.withLock { .now - $0 }
            guard idle < pause else { return }
            try await Task.sleep(for: pause - idle)
        }
    }
}
