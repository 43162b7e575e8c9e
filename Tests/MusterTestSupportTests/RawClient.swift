import MusterTestSupport
import NIOCore
import NIOPosix
import NIOSSL
import SystemPackage

/// A TCP client that sends the given text and keeps all bytes that come back. A client that understands HTTP would hide
/// the faults of an origin.
final class RawClient: Sendable {
    /// What has arrived.
    struct Received: Sendable {
        var bytes: [UInt8] = []
        var isClosed = false
        var failure: String?

        var text: String { String(decoding: bytes, as: UTF8.self) }
        /// The head of the first response, without its blank line.
        var head: String {
            let end = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.lowerBound ?? bytes.endIndex
            return String(decoding: bytes[..<end], as: UTF8.self)
        }
        /// What follows the head.
        var body: [UInt8] {
            let mark = Array("\r\n\r\n".utf8)
            guard let range = bytes.firstRange(of: mark) else { return [] }
            return Array(bytes[range.upperBound...])
        }
    }

    let received: Observed<Received>
    private let channel: any Channel

    static func connect(_ origin: ScriptedOrigin) async throws -> RawClient {
        try await connect(port: origin.port, caFile: origin.caFile)
    }

    static func connect(port: Int, caFile: FilePath? = nil) async throws -> RawClient {
        let received = Observed(Received())
        let context = try caFile.map {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.trustRoots = .file($0.string)
            return try NIOSSLContext(configuration: configuration)
        }
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context {
                        let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost")
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                    try channel.pipeline.syncOperations.addHandler(Collector(received: received))
                }
            }
            .connect(host: "127.0.0.1", port: port)
            .get()
        return RawClient(received: received, channel: channel)
    }

    private init(received: Observed<Received>, channel: any Channel) {
        self.received = received
        self.channel = channel
    }

    deinit { channel.close(promise: nil) }

    func send(_ text: String) async throws { try await channel.writeAndFlush(ByteBuffer(string: text)) }

    func close() async throws { try await channel.close() }

    /// Sends one request on a connection of its own, and returns all that came until the origin closed.
    static func get(
        _ origin: ScriptedOrigin,
        _ path: String,
        headers: [String] = [],
        method: String = "GET"
    ) async throws -> Received {
        let client = try await connect(origin)
        try await client.send(request(path, headers: headers + ["Connection: close"], method: method))
        return try await client.received.wait(for: "the end of the response", details: { $0.text }) { $0.isClosed }
    }

    static func request(_ path: String, headers: [String] = [], method: String = "GET") -> String {
        "\(method) \(path) HTTP/1.1\r\nHost: test\r\n" + headers.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        let received: Observed<Received>

        init(received: Observed<Received>) { self.received = received }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = Array(unwrapInboundIn(data).readableBytesView)
            received.update { $0.bytes += bytes }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            received.update { $0.failure = "\(error)" }
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { received.update { $0.isClosed = true } }
    }
}
