public import MusterAPI
import MusterCore
import MusterCurl

/// Carries the requests of MusterAPI's client over libcurl: one loop, one thread, connections kept alive between calls.
///
/// The code that makes a transport calls `shutdown` in the end; a transport that is only released cuts the requests under
/// way.
public final class CurlTransport: Sendable {
    /// The most bytes that an answer may have; a page of any listing is far smaller.
    private static let responseLimitBytes = 64 << 20

    private let loop: CurlLoop
    private let client: CurlClient

    /// Starts the transport's thread.
    ///
    /// - Throws: `Unreachable` when libcurl or the system has no room for it.
    public init() throws {
        do {
            loop = try CurlLoop()
        } catch {
            throw Unreachable("the HTTP client does not start: \(error)")
        }
        client = CurlClient(loop: loop, userAgent: "muster")
    }

    /// MusterAPI's `send`. Throws `Unreachable` when there was no answer, or when the answer was too large, and
    /// `CancellationError` when the calling task was cancelled.
    public var send: APISend {
        { [client] request in try await Self.send(request, by: client) }
    }

    /// Ends the thread; requests that are under way end as `Unreachable`.
    public func shutdown() async {
        await loop.shutdown()
    }

    private static func send(_ request: APIRequest, by client: CurlClient) async throws -> APIResponse {
        do {
            let answer = try await client.send(translated(request))
            return APIResponse(status: answer.status, body: answer.body)
        } catch {
            switch error {
            case .cancelled: throw CancellationError()
            case .bodyFailed(let cause): throw cause
            case .loopClosed: throw Unreachable("the HTTP client is shut down")
            case .responseTooLarge(let limit): throw Unreachable("the answer is larger than \(limit) bytes")
            case .transfer(let failure):
                switch failure {
                case .connectTimeout, .firstByteTimeout, .deadline, .tooSlow:
                    throw Unreachable(failure.description, isTimeout: true)
                case .connect, .proxy: throw Unreachable(failure.description, isRefused: true)
                case _: throw Unreachable(failure.description)
                }
            }
        }
    }

    private static func translated(_ request: APIRequest) -> HTTPRequest {
        var translated = HTTPRequest(
            method: request.method,
            url: request.url,
            headers: HeaderList(request.headers.map { HeaderField($0.name, $0.value) })
        )
        translated.maxResponseBytes = responseLimitBytes
        // A coordinator is near or unreachable: connecting takes only a small part of a call's time.
        translated.connectTimeout = min(request.timeout ?? .seconds(10), .seconds(10))
        translated.responseTimeout = request.timeout ?? .seconds(300)
        translated.deadline = request.timeout
        // By itself, libcurl repeats a request that got no answer on a connection that was used before.
        translated.isAlone = request.manner == .change
        switch request.body {
        case .none: translated.body = .none
        case .bytes(let bytes): translated.body = .bytes(bytes)
        case .stream(let chunks): translated.body = .stream(HTTPBodyStream(chunks()), length: nil)
        }
        return translated
    }
}
