import NIOCore

/// One connection of HTTP/1.1 to a receiver of webhooks: takes its requests one after the other.
struct ReceiverConnection {
    /// The channel that it is served by.
    typealias Channel = HeldChannel<ByteBuffer, ByteBuffer>

    let state: Observed<WebhookReceiver.State>
    let script: WebhookReceiver.Script

    /// Serves requests until one side closes.
    func serve(_ held: Channel) async {
        await held.serveRequests { request, outbound in
            let answer = note(request)
            defer { state.update { $0.running -= 1 } }
            return try await give(answer, to: held.connection.channel, outbound)
        }
    }

    private func note(_ request: OriginRequest) -> WebhookReceiver.Answer {
        state.update { [script] state in
            let id = request.header("webhook-id") ?? ""
            let attempt = state.deliveries.filter { $0.id == id }.count + 1
            let answer = script(id, attempt)
            state.deliveries.append(
                WebhookReceiver.Delivery(
                    path: request.target, headers: request.headers, body: request.body, attempt: attempt,
                    answer: answer))
            state.running += 1
            state.mostAtOnce = max(state.mostAtOnce, state.running)
            return answer
        }
    }

    /// Answers, and says whether another request may come.
    private func give(
        _ answer: WebhookReceiver.Answer, to channel: any NIOCore.Channel,
        _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) async throws -> Bool {
        switch answer {
        case .status(let status, let headers):
            let fields = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
            try await outbound.write(
                ByteBuffer(string: "HTTP/1.1 \(status) Scripted\r\n\(fields)Content-Length: 2\r\n\r\nok"))
            return true
        case .late(let delay):
            try await Task.sleep(for: delay)
            try await outbound.write(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
            return true
        case .endless:
            try await outbound.write(ByteBuffer(string: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
            let chunk = ByteBuffer(string: "1000\r\n" + String(repeating: "!", count: 0x1000) + "\r\n")
            while true { try await outbound.write(chunk) }
        case .silentBody:
            try await outbound.write(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"))
            try await channel.untilClosed()
            return false
        case .hang:
            try await channel.untilClosed()
            return false
        case .die:
            try await ConnectionEnd.reset(channel)
            return false
        }
    }
}
