import NIOCore
import NIOHTTP2
import NIOSSL
import NIOTLS

/// The layers between an accepted connection and its requests: TLS, the choice of a protocol, and HTTP/2's frames.
struct OriginFront: Sendable {
    typealias HTTP1Channel = HeldChannel<ByteBuffer, ByteBuffer>
    typealias StreamChannel = HeldChannel<HTTP2Frame.FramePayload, HTTP2Frame.FramePayload>
    typealias Multiplexer = NIOHTTP2Handler.AsyncStreamMultiplexer<StreamChannel>

    let transport: ScriptedOrigin.Transport
    let tls: NIOSSLContext?
    let state: Observed<ScriptedOrigin.State>

    /// What a connection carries, once that is agreed.
    enum Conversation: Sendable {
        case http1(HTTP1Channel)
        case http2(Multiplexer)
    }

    /// A connection that was accepted.
    struct Accepted: Sendable {
        let number: Int
        /// How the connection is refused, because of a limit or a rule; nil if it is accepted.
        let refusal: ScriptedOrigin.Refusal?
        let channel: any Channel
        /// Nil for a connection that is refused without a response.
        let conversation: EventLoopFuture<Conversation>?
        let isTLS: Bool
        let state: Observed<ScriptedOrigin.State>
    }

    /// Makes the pipeline of a connection. Called on its event loop.
    func accept(_ channel: any Channel) -> EventLoopFuture<Accepted> {
        let (number, refusal) = state.update { $0.accept(channel) }
        channel.closeFuture.whenComplete { _ in state.update { $0.channels[number] = nil } }
        return channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(ConnectionEnd.Ground())
            let conversation: EventLoopFuture<Conversation>?
            switch refusal {
            case .close, .reset, .hang: conversation = nil
            case .status, nil: conversation = try converse(channel)
            }
            return Accepted(
                number: number,
                refusal: refusal,
                channel: channel,
                conversation: conversation,
                isTLS: tls != nil,
                state: state
            )
        }
    }

    private func converse(_ channel: any Channel) throws -> EventLoopFuture<Conversation> {
        guard let tls else {
            return channel.eventLoop.makeCompletedFuture { try Self.open(transport.wire.version, channel) }
        }
        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
        let negotiation = NIOTypedApplicationProtocolNegotiationHandler<Conversation> { result, channel in
            channel.eventLoop.makeCompletedFuture {
                switch result {
                case .negotiated("h2"): try Self.open(.http2, channel)
                case .negotiated, .fallback: try Self.open(state.value.speaksHTTP2Alone ? .http2 : .http1, channel)
                }
            }
        }
        try channel.pipeline.syncOperations.addHandler(negotiation)
        return negotiation.protocolNegotiationResult
    }

    private static func open(_ version: ScriptedOrigin.Version, _ channel: any Channel) throws -> Conversation {
        switch version {
        case .http1:
            return .http1(try HTTP1Channel(wrapping: channel))
        case .http2:
            var configuration = NIOHTTP2Handler.Configuration()
            // Malformed messages are sent on purpose.
            configuration.connection.headerBlockValidation = .disabled
            configuration.connection.contentLengthValidation = .disabled
            return .http2(
                try channel.pipeline.syncOperations.configureAsyncHTTP2Pipeline(
                    mode: .server,
                    configuration: configuration
                ) { stream in
                    stream.eventLoop.makeCompletedFuture { try StreamChannel(wrapping: stream) }
                }
            )
        }
    }
}

extension OriginFront.Accepted {
    /// Serves the connection until it ends, or until the task is cancelled.
    func serve() async {
        await withTaskCancellationHandler {
            do {
                try await converse()
            } catch {
                // Expected: many tests break connections on purpose.
                ConnectionEnd.abort(channel)
            }
        } onCancel: {
            ConnectionEnd.abort(channel)
        }
        state.update { $0.leave(wasRefused: refusal != nil) }
    }

    private func converse() async throws {
        switch refusal {
        case .close: return try await channel.close()
        case .reset: return try await ConnectionEnd.reset(channel)
        case .hang: return try await channel.untilClosed()
        case .status, nil: break
        }
        guard let conversation else { return }
        switch try await agreed(conversation) {
        case .http1(let connection):
            await OriginConnection(responder: try await responder(.http1), channel: channel).serve(connection)
        case .http2(let multiplexer):
            let responder = try await responder(.http2)
            try await withThrowingDiscardingTaskGroup { group in
                for try await stream in multiplexer.inbound {
                    group.addTask {
                        await OriginStream(
                            responder: responder, channel: stream.connection.channel, connection: channel
                        ).serve(stream)
                    }
                }
            }
        }
    }

    private func agreed(
        _ conversation: EventLoopFuture<OriginFront.Conversation>
    ) async throws
        -> OriginFront.Conversation
    {
        do {
            return try await conversation.get()
        } catch {
            state.update { $0.failedHandshakes += 1 }
            throw error
        }
    }

    private func responder(_ version: ScriptedOrigin.Version) async throws -> OriginResponder {
        let channel = channel
        let hasCertificate =
            isTLS
            ? try await channel.eventLoop.submit {
                try channel.pipeline.syncOperations.nioSSL_peerCertificate() != nil
            }.get() : false
        return OriginResponder(
            state: state,
            connection: ScriptedOrigin.ConnectionFacts(
                number: number,
                wire: ScriptedOrigin.Wire(isTLS: isTLS, version: version),
                hasClientCertificate: hasCertificate,
                refusal: refusal
            )
        )
    }
}

extension Channel {
    /// Waits for its end.
    func untilClosed() async throws {
        let closed = Observed(false)
        closeFuture.whenComplete { _ in closed.update { $0 = true } }
        try await closed.wait(for: "the end of the connection", limit: nil) { $0 }
    }
}
