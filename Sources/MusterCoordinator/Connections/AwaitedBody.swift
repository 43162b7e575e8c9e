import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOHTTPTypes

/// The body of a request whose peer waits for 100 (Continue) before it sends one (RFC 9110 §10.1.1). The 100 is sent when the
/// body is read. An answer that needs no body, such as 401 or 413, takes the place of the 100.
private struct AwaitedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let channel: any Channel

    struct AsyncIterator: AsyncIteratorProtocol {
        var body: RequestBody.AsyncIterator
        let channel: any Channel
        var isAwaited = true

        mutating func next() async throws -> ByteBuffer? {
            if isAwaited {
                isAwaited = false
                // The read after this one fails too when the connection is gone.
                try? await channel.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue))).get()
            }
            return try await body.next()
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: body.makeAsyncIterator(), channel: channel) }
}

extension Request {
    /// Has 100 (Continue) sent when the body is read, where the peer waits for it.
    mutating func sendContinue(over channel: any Channel) {
        guard expectations.contains(Self.continueExpectation), hasBody else { return }
        body = RequestBody(asyncSequence: AwaitedBody(body: body, channel: channel))
    }
}
