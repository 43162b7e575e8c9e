import NIOCore

/// A scripted server that listens: it serves each connection in a task of its own, until it is stopped or released.
final class ScriptedService: Sendable {
    /// The listener has no address.
    struct NoAddress: Error {}

    /// The port.
    let port: Int
    private let task: Task<Void, Never>

    /// - Parameters:
    ///   - name: the server's name in messages.
    ///   - end: called once it has stopped listening.
    init<Connection: Sendable>(
        _ name: String, _ listener: NIOAsyncChannel<Connection, Never>, end: @escaping @Sendable () -> Void = {},
        serve: @escaping @Sendable (Connection) async -> Void
    ) throws {
        guard let port = listener.channel.localAddress?.port else { throw NoAddress() }
        self.port = port
        task = Task {
            do {
                try await listener.executeThenClose { connections in
                    try await withThrowingDiscardingTaskGroup { group in
                        for try await connection in connections { group.addTask { await serve(connection) } }
                    }
                }
            } catch is CancellationError {
                // Stopped.
            } catch {
                print("the \(name) stopped listening: \(error)")
            }
            end()
        }
    }

    deinit { task.cancel() }

    /// Stops listening, drops all connections, and waits until that is done.
    func stop() async {
        task.cancel()
        await task.value
    }
}

extension HeldChannel<ByteBuffer, ByteBuffer> {
    /// Takes requests of HTTP/1.1 one after the other, until one side closes or `answer` says that no other may come. Errors of the client's
    /// connection are left to the client.
    func serveRequests(
        _ answer: (OriginRequest, NIOAsyncChannelOutboundWriter<ByteBuffer>) async throws -> Bool
    ) async {
        do {
            try await connection.executeThenClose { inbound, outbound in
                var buffer = ByteBuffer()
                var bytes = inbound.makeAsyncIterator()
                while true {
                    switch OriginRequest.parse(&buffer) {
                    case .incomplete:
                        guard var more = try await bytes.next() else { return }
                        buffer.writeBuffer(&more)
                    case .malformed:
                        try await outbound.write(
                            ByteBuffer(string: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
                        return
                    case .request(let request):
                        guard try await answer(request, outbound) else { return }
                    }
                }
            }
        } catch {
            // Expected: many tests break connections on purpose.
            return
        }
    }
}
