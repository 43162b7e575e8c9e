import NIOCore
import NIOHTTP1

/// Applies what the version of a request means for its connection and its answer. The handlers after this one see no version.
/// Runs on the connection's own event loop.
///
/// - A connection of HTTP/1.0 ends with its first answer, as one does whose peer asks for it (RFC 9112 §9.3).
/// - An answer in HTTP/1.0 has no chunks: without a length, its end is that of the connection (RFC 9112 §6.1).
/// - A peer that speaks HTTP/1.0 waits for no 100 (Continue), whatever it sends (RFC 9110 §10.1.1).
/// - A request of HTTP/1.1 without a Host gets an empty one, which `HeadMiddleware` refuses: one of HTTP/1.0 needs none.
final class VersionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// What a request asks of its answer.
    private struct Terms {
        /// Whether the peer speaks HTTP/1.0.
        let isOld: Bool
        /// Whether the connection ends with the answer.
        let isLast: Bool
    }

    /// The terms of the requests without an answer, in the order of their arrival.
    private var unanswered: [Terms] = []

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        let isOld = head.version.major < 1 || head.version.major == 1 && head.version.minor < 1
        let terms = Terms(isOld: isOld, isLast: isOld || !head.isKeepAlive)
        unanswered.append(terms)
        // The server ends a connection whose request has this very value.
        if terms.isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        if isOld {
            head.headers.remove(name: "Expect")
        } else if !head.headers.contains(name: "Host") {
            head.headers.add(name: "Host", value: "")
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head):
            // A 100 (Continue) is no answer yet.
            guard let terms = unanswered.first, head.status.code >= 200 else { break }
            if terms.isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
            if terms.isOld, head.status.mayHaveResponseBody, !head.headers.contains(name: "Content-Length") {
                head.version = .http1_0
            }
            return context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body: break
        case .end: if !unanswered.isEmpty { unanswered.removeFirst() }
        }
        context.write(data, promise: promise)
    }
}
