import NIOCore

/// One connection of HTTP/1.1 to a scripted origin: takes its requests one after the other.
struct OriginConnection: ResponseWriter {
    let responder: OriginResponder
    let channel: any Channel

    /// Serves requests until one side closes.
    func serve(_ held: OriginFront.HTTP1Channel) async {
        await held.serveRequests { request, _ in try await responder.answer(request, by: self) }
    }

    func sendHead(_ plan: ResponsePlan) async throws {
        try await send(ByteBuffer(string: plan.garbage ?? plan.head()))
    }

    func sendBody(_ bytes: [UInt8], _ plan: ResponsePlan) async throws {
        if case .chunked = plan.framing {
            try await send(Self.chunk(bytes))
        } else {
            try await send(ByteBuffer(bytes: bytes))
        }
    }

    func endBody(_ plan: ResponsePlan) async throws {
        if case .chunked(_, true) = plan.framing, !plan.isCut { try await send(ByteBuffer(string: "0\r\n\r\n")) }
        if plan.sentSurplus > 0 { try await send(ByteBuffer(repeating: UInt8(ascii: "!"), count: plan.sentSurplus)) }
    }

    func sendGoAway(isFinished: Bool) async throws {}

    func end(_ ending: ResponsePlan.Ending) async throws {
        switch ending {
        case .keepAlive, .close:
            // The connection is closed by the reader of its requests.
            break
        case .reset, .resetStream:
            try await ConnectionEnd.reset(channel)
        case .unclean:
            try await ConnectionEnd.unclean(channel)
        case .hang:
            try await channel.untilClosed()
        }
    }

    private func send(_ bytes: ByteBuffer) async throws {
        try await channel.writeAndFlush(bytes)
    }

    private static func chunk(_ bytes: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer(string: String(bytes.count, radix: 16) + "\r\n")
        buffer.writeBytes(bytes)
        buffer.writeString("\r\n")
        return buffer
    }
}
