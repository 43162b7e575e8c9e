import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypesHTTP1

/// A connection as Hummingbird serves it, with what Hummingbird leaves to the program: the limits of a connection, clients of
/// HTTP/1.0, and peers that wait before they send a body.
struct CoordinatorChannel: ServerChildChannel {
    private let http: HTTP1Channel

    /// Connections that `responder` answers.
    init(
        table: ConnectionTable, limits: ConnectionLimits, responder: @escaping HTTPChannelHandler.Responder
    ) {
        http = HTTP1Channel(
            responder: { (request: Request, writer: consuming ResponseWriter, channel: any Channel) in
                var request = request
                request.sendContinue(over: channel)
                try await responder(request, writer, channel)
            },
            configuration: .init(additionalChannelHandlers: [ConnectionHandler(table: table, limits: limits)]))
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
        http.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            // This codec drops the version of a request.
            let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
            try pipeline.addHandler(VersionHandler(), position: .before(codec))
            return value
        }
    }

    func handle(value: HTTP1Channel.Value, logger: Logger) async {
        await http.handle(value: value, logger: logger)
    }
}
