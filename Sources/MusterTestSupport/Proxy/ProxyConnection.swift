import FoundationEssentials
import NIOCore
import NIOPosix

/// One connection to a scripted proxy: it carries one request or one tunnel, then it closes.
struct ProxyConnection: Sendable {
    typealias Side = HeldChannel<ByteBuffer, ByteBuffer>

    let state: Observed<ScriptedProxy.State>

    /// Serves it. Errors of a connection are left to its two ends.
    func serve(_ client: Side) async {
        await withTaskCancellationHandler {
            do {
                try await client.connection.executeThenClose { inbound, _ in
                    var bytes = inbound.makeAsyncIterator()
                    guard let (request, rest) = try await Self.request(&bytes) else { return }
                    switch state.update({ $0.decide(request) }) {
                    case .refuse(let status):
                        try await client.connection.channel.writeAndFlush(Self.refusal(status))
                    case .forward(let port):
                        let server = try await Self.connect(port)
                        let isTunnel = request.method == "CONNECT"
                        if isTunnel { try await client.connection.channel.writeAndFlush(Self.established) }
                        let first = isTunnel ? rest : request.forwarded
                        try await relay(client.connection.channel, &bytes, to: server, first: first, isTunnel: isTunnel)
                    }
                }
            } catch {
                return
            }
        } onCancel: {
            client.connection.channel.close(promise: nil)
        }
    }

    /// Passes bytes on in both directions until one of the two sides closes; then the other is closed too.
    private func relay(
        _ client: any Channel,
        _ bytes: inout NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator,
        to server: Side,
        first: ByteBuffer,
        isTunnel: Bool
    ) async throws {
        try await server.connection.executeThenClose { answers, toServer in
            try await toServer.write(first)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    defer { client.close(promise: nil) }
                    var isHead = !isTunnel
                    for try await piece in answers {
                        // Flushed, since a close drops unflushed bytes.
                        try await client.writeAndFlush(isHead ? Self.closing(piece) : piece)
                        isHead = false
                    }
                }
                while let piece = try await bytes.next() { try await toServer.write(piece) }
                server.connection.channel.close(promise: nil)
            }
        }
    }

    private static func request(
        _ bytes: inout NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    ) async throws
        -> (request: OriginRequest, rest: ByteBuffer)?
    {
        var buffer = ByteBuffer()
        while true {
            switch OriginRequest.parse(&buffer) {
            case .request(let request): return (request, buffer)
            case .malformed: return nil
            case .incomplete:
                guard var more = try await bytes.next() else { return nil }
                buffer.writeBuffer(&more)
            }
        }
    }

    private static func connect(_ port: Int) async throws -> Side {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture { try Side(wrapping: channel) }
            }
    }

    private static let established = ByteBuffer(string: "HTTP/1.1 200 Connection established\r\n\r\n")

    private static func refusal(_ status: Int) -> ByteBuffer {
        let challenge = status == 407 ? "Proxy-Authenticate: Basic realm=\"scripted\"\r\n" : ""
        return ByteBuffer(
            string: "HTTP/1.1 \(status) Proxy\r\n\(challenge)Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
    }

    /// Adds `Connection: close` to the head of a response, since no other follows on this connection. The servers of
    /// these tests send the status line in one piece.
    private static func closing(_ piece: ByteBuffer) -> ByteBuffer {
        let view = piece.readableBytesView
        guard let end = view.firstRange(of: Array("\r\n".utf8)) else { return piece }
        var closing = ByteBuffer(bytes: view[..<end.upperBound])
        closing.writeString("Connection: close\r\nVia: 1.1 scripted-proxy\r\n")
        closing.writeBytes(view[end.upperBound...])
        return closing
    }
}

extension ScriptedProxy.Credentials {
    /// The Proxy-Authorization field.
    var field: String { "Basic " + Data("\(user):\(password)".utf8).base64EncodedString() }
}

extension OriginRequest {
    /// The destination of a request to a proxy: the authority of a target in absolute form, or of CONNECT.
    var proxyAuthority: (host: String, port: Int)? {
        let authority: Substring
        if method == "CONNECT" {
            authority = target[...]
        } else {
            guard target.hasPrefix("http://") else { return nil }
            authority = target.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" }
        }
        let parts = authority.split(separator: ":")
        guard let host = parts.first else { return nil }
        return (String(host), parts.count > 1 ? Int(parts[1]) ?? 0 : 80)
    }

    /// The request as the origin gets it: in origin form, without the fields for the proxy, and with `Connection: close`.
    var forwarded: ByteBuffer {
        let afterAuthority = target.dropFirst("http://".count).drop { $0 != "/" && $0 != "?" }
        let path = afterAuthority.hasPrefix("/") ? String(afterAuthority) : "/" + afterAuthority
        var text = "\(method) \(path) HTTP/1.1\r\n"
        for field in headers
        where !["proxy-authorization", "proxy-connection", "connection"].contains(field.name.lowercased()) {
            text += "\(field.name): \(field.value)\r\n"
        }
        return ByteBuffer(string: text + "Via: 1.1 scripted-proxy\r\nConnection: close\r\n\r\n" + body)
    }
}
