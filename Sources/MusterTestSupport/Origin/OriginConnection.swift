import NIOCore
import NIOPosix

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// One connection to a scripted origin: takes its requests one after the other.
struct OriginConnection: Sendable {
    let number: Int
    let state: Observed<ScriptedOrigin.State>
    let channel: any Channel

    /// How many bytes of body are sent at a time, where nothing else says.
    static let pieceBytes = 64 * 1024

    /// Serves requests until one side closes. What goes wrong with a client's connection is the client's affair.
    func serve(_ connection: NIOAsyncChannel<ByteBuffer, ByteBuffer>) async {
        do {
            try await connection.executeThenClose { inbound, _ in
                var buffer = ByteBuffer()
                var bytes = inbound.makeAsyncIterator()
                while true {
                    switch OriginRequest.parse(&buffer) {
                    case .incomplete:
                        guard var more = try await bytes.next() else { return }
                        buffer.writeBuffer(&more)
                    case .malformed:
                        try await send(ByteBuffer(string: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
                        return
                    case .request(let request):
                        guard try await answer(request) else { return }
                    }
                }
            }
        } catch {
            // A connection that breaks is what many tests are about.
            return
        }
    }

    /// Answers, and says whether the connection can be used again.
    private func answer(_ request: OriginRequest) async throws -> Bool {
        let (entry, plan) = state.update { $0.begin(request, connection: number) }
        defer { state.update { $0.finish(entry) } }
        if plan.hangsBeforeHeaders {
            try await waitForClose()
            return false
        }
        if plan.closesBeforeHeaders { return false }
        state.update { $0.requests[entry].status = plan.status }
        try await send(ByteBuffer(string: plan.head()))
        if !plan.omitsBody { try await sendBody(plan, path: request.path, entry: entry) }
        switch plan.ending {
        case .keepAlive:
            return request.header("Connection")?.lowercased() != "close" && plan.framing != .close
        case .close:
            return false
        case .reset:
            try await reset()
            return false
        case .hang:
            try await waitForClose()
            return false
        }
    }

    private func sendBody(_ plan: ResponsePlan, path: String, entry: Int) async throws {
        let isChunked: Bool
        if case .chunked = plan.framing { isChunked = true } else { isChunked = false }
        let end = min(plan.bodyLength, plan.stopsAfterBytes ?? .max)
        var sent: Int64 = 0
        let started = ContinuousClock.now
        for segment in plan.segments {
            var offset: Int64 = 0
            while offset < segment.count, sent < end {
                let open = try await waitForGate(path, sent: sent)
                let rate = state.value.bytesPerSecond
                let piece = plan.pace?.bytes ?? min(Self.pieceBytes, rate.map { max(1, $0 / 20) } ?? Self.pieceBytes)
                let count = min(Int64(piece), segment.count - offset, end - sent, open - sent)
                let bytes = segment.bytes(offset: offset, count: count, corruptOffsets: plan.corruptOffsets)
                try await send(isChunked ? Self.chunk(bytes) : ByteBuffer(bytes: bytes))
                offset += count
                sent += count
                state.update { $0.requests[entry].bodyBytesSent += count }
                if let pace = plan.pace { try await Task.sleep(for: pace.every) }
                if let rate {
                    // As many bytes as the time since the beginning allows, so that short delays do not add up.
                    try await Task.sleep(until: started + .seconds(Double(sent) / Double(rate)), clock: .continuous)
                }
            }
        }
        // A gate at the very end of the body holds back the end of the response.
        _ = try await waitForGate(path, sent: sent)
        if case .chunked(_, true) = plan.framing { try await send(ByteBuffer(string: "0\r\n\r\n")) }
        if plan.surplus > 0 { try await send(ByteBuffer(repeating: UInt8(ascii: "!"), count: plan.surplus)) }
    }

    /// Waits while the path's gate is shut here, and returns up to where it is open.
    private func waitForGate(_ path: String, sent: Int64) async throws -> Int64 {
        if let gate = state.value.gates[path], gate <= sent {
            try await untilClosed {
                try await state.wait(for: "the gate of \(path)", limit: nil) { ($0.gates[path] ?? .max) > sent }
            }
        }
        return max(state.value.gates[path] ?? .max, sent + 1)
    }

    /// Waits for something, and gives up when the connection ends.
    private func untilClosed(_ body: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await waitForClose()
                throw ChannelError.ioOnClosedChannel
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func waitForClose() async throws {
        let closed = Observed(false)
        channel.closeFuture.whenComplete { _ in closed.update { $0 = true } }
        try await closed.wait(for: "the end of the connection", limit: nil) { $0 }
    }

    private func send(_ bytes: ByteBuffer) async throws {
        try await channel.writeAndFlush(bytes)
    }

    /// Closes with RST rather than FIN: no lingering, at zero seconds (socket(7)).
    private func reset() async throws {
        if let socket = channel as? any SocketOptionProvider {
            try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        }
        try await channel.close()
    }

    private static func chunk(_ bytes: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer(string: String(bytes.count, radix: 16) + "\r\n")
        buffer.writeBytes(bytes)
        buffer.writeString("\r\n")
        return buffer
    }
}

extension ResponsePlan.Segment {
    /// Some of its bytes, with those of the file altered that are to be wrong.
    func bytes(offset: Int64, count: Int64, corruptOffsets: [Int64]) -> [UInt8] {
        switch self {
        case .literal(let bytes):
            return Array(bytes[Int(offset)..<Int(offset + count)])
        case .content(let content, let range):
            let first = range.lowerBound + offset
            var bytes = content.bytes(in: first..<(first + count))
            for corrupt in corruptOffsets where (first..<(first + count)).contains(corrupt) {
                bytes[Int(corrupt - first)] ^= 0xff
            }
            return bytes
        }
    }
}

extension ScriptedOrigin.State {
    /// Notes a request, and plans its response.
    mutating func begin(_ request: OriginRequest, connection: Int) -> (entry: Int, plan: ResponsePlan) {
        let entry = requests.count
        requests.append(
            ScriptedOrigin.Request(
                number: entry,
                connection: connection,
                method: request.method,
                target: request.target,
                path: request.path,
                headers: request.headers,
                status: 0,
                bodyBytesSent: 0,
                isFinished: false
            )
        )
        let plan = plan(request)
        activeResponses += 1
        mostActiveResponses = max(mostActiveResponses, activeResponses)
        return (entry, plan)
    }

    /// Notes the end of a response.
    mutating func finish(_ entry: Int) {
        activeResponses -= 1
        if requests.indices.contains(entry) { requests[entry].isFinished = true }
    }

    private mutating func plan(_ request: OriginRequest) -> ResponsePlan {
        var failed = ResponsePlan()
        failed.omitsBody = request.method == "HEAD"
        guard request.method == "GET" || request.method == "HEAD" else {
            failed.replaceBody(status: 405, contentType: "text/plain", text: "GET and HEAD only\n")
            failed.set("Allow", "GET, HEAD")
            return failed
        }
        if let responseLimit, activeResponses >= responseLimit.count {
            failed.replaceBody(status: responseLimit.status, contentType: "text/plain", text: "too many\n")
            return failed
        }
        let number = counts[request.path, default: 0]
        counts[request.path] = number + 1
        let range = OriginRange(request.header("Range"))
        let applying = (rules[request.path] ?? []).filter { $0.condition.holds(number: number, range: range) }
        guard files[request.path] != nil || !applying.isEmpty else {
            failed.replaceBody(status: 404, contentType: "text/plain", text: "no such file\n")
            return failed
        }
        return ResponsePlan.make(
            file: files[request.path] ?? ScriptedOrigin.File(.empty),
            asked: ResponsePlan.Asked(
                isHead: request.method == "HEAD",
                range: range,
                ifRange: request.header("If-Range")
            ),
            misbehaviours: applying.map(\.misbehaviour)
        )
    }
}
