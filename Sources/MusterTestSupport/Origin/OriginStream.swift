import NIOCore
import NIOHPACK
import NIOHTTP2

/// One stream of HTTP/2 to a scripted origin: one request, one response.
struct OriginStream: ResponseWriter {
    let responder: OriginResponder
    /// The stream.
    let channel: any Channel
    /// The connection that the stream belongs to.
    let connection: any Channel

    /// Serves the request.
    func serve(_ held: OriginFront.StreamChannel) async {
        do {
            try await held.connection.executeThenClose { inbound, _ in
                guard let request = try await Self.request(inbound) else { return }
                _ = try await responder.answer(request, by: self)
                // A refused connection ends after its answer.
                if responder.connection.refusal != nil { connection.close(promise: nil) }
            }
        } catch {
            // Expected: many tests break streams on purpose.
            return
        }
    }

    private static func request(
        _ frames: NIOAsyncChannelInboundStream<HTTP2Frame.FramePayload>
    ) async throws
        -> OriginRequest?
    {
        var head: HPACKHeaders?
        var body = ByteBuffer()
        reading: for try await frame in frames {
            switch frame {
            case .headers(let headers):
                // Later ones are trailers.
                head = head ?? headers.headers
                if headers.endStream { break reading }
            case .data(let data):
                if case .byteBuffer(var bytes) = data.data { body.writeBuffer(&bytes) }
                guard body.readableBytes <= OriginRequest.limitBytes else { return nil }
                if data.endStream { break reading }
            case .priority, .rstStream, .settings, .pushPromise, .ping, .goAway, .windowUpdate, .alternativeService,
                .origin:
                break
            }
        }
        guard let head, let method = head.first(name: ":method"), let target = head.first(name: ":path") else {
            return nil
        }
        var fields = head.filter { !$0.name.hasPrefix(":") }.map { ScriptedOrigin.Header($0.name, $0.value) }
        if let authority = head.first(name: ":authority") { fields.append(ScriptedOrigin.Header("host", authority)) }
        return OriginRequest(method: method, target: target, headers: fields, body: String(buffer: body))
    }

    func sendHead(_ plan: ResponsePlan) async throws {
        for status in plan.interim { try await send(.headers(.init(headers: [":status": "\(status)"]))) }
        var headers: HPACKHeaders = [":status": "\(plan.status)"]
        for field in plan.fields { headers.add(name: field.name.lowercased(), value: field.value) }
        switch plan.framing {
        case .length(let lengths):
            for length in lengths { headers.add(name: "content-length", value: length) }
        case .chunked, .close:
            // HTTP/2 has no transfer codings: there is just no content-length.
            break
        }
        try await send(.headers(.init(headers: headers)))
    }

    func sendBody(_ bytes: [UInt8], _ plan: ResponsePlan) async throws {
        try await send(.data(.init(data: .byteBuffer(ByteBuffer(bytes: bytes)))))
    }

    func endBody(_ plan: ResponsePlan) async throws {
        if plan.sentSurplus > 0 {
            try await sendBody([UInt8](repeating: UInt8(ascii: "!"), count: plan.sentSurplus), plan)
        }
        // HTTP/2's equivalent of chunks without an end is a stream that is reset.
        if case .chunked(_, false) = plan.framing { try await end(.reset) }
    }

    func sendGoAway(isFinished: Bool) async throws {
        let own = try await channel.getOption(HTTP2StreamChannelOptions.streamID).get()
        let goAway = HTTP2Frame.FramePayload.goAway(
            lastStreamID: isFinished ? own : .rootStream,
            errorCode: isFinished ? .noError : .internalError,
            opaqueData: nil
        )
        try await connection.writeAndFlush(HTTP2Frame(streamID: .rootStream, payload: goAway))
        guard !isFinished else { return }
        try await connection.close()
        throw ChannelError.ioOnClosedChannel
    }

    func end(_ ending: ResponsePlan.Ending) async throws {
        switch ending {
        case .keepAlive, .close:
            try await send(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true)))
        case .reset:
            try await send(.rstStream(.internalError))
        case .resetStream(let code):
            try await send(.rstStream(HTTP2ErrorCode(networkCode: Int(code))))
        case .unclean:
            try await ConnectionEnd.unclean(connection)
        case .hang:
            try await channel.untilClosed()
        }
    }

    private func send(_ frame: HTTP2Frame.FramePayload) async throws {
        try await channel.writeAndFlush(frame)
    }
}
