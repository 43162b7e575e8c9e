import NIOCore

/// Sends a response by one version of HTTP.
protocol ResponseWriter: Sendable {
    /// The channel that the response goes to: a connection of HTTP/1.1, or a stream of HTTP/2.
    var channel: any Channel { get }
    /// Sends the status and the fields, and what comes before them.
    func sendHead(_ plan: ResponsePlan) async throws
    /// Sends a piece of the body.
    func sendBody(_ bytes: [UInt8], _ plan: ResponsePlan) async throws
    /// Marks the end of the body, unless the plan cuts it short, and sends surplus bytes.
    func endBody(_ plan: ResponsePlan) async throws
    /// Sends GOAWAY; HTTP/1.1 has none.
    func sendGoAway(isFinished: Bool) async throws
    /// Does what comes after the response, or in place of it.
    func end(_ ending: ResponsePlan.Ending) async throws
}

/// Answers the requests of one connection: plans a response, and sends it at the pace and up to the point that the script
/// wants.
struct OriginResponder: Sendable {
    let state: Observed<ScriptedOrigin.State>
    let connection: ScriptedOrigin.ConnectionFacts

    /// How many bytes of body are sent at a time, unless the script says otherwise.
    static let pieceBytes = 64 * 1024

    /// Answers, and says whether the connection can be used again.
    func answer(_ request: OriginRequest, by writer: some ResponseWriter) async throws -> Bool {
        let (entry, plan) = state.update { $0.begin(request, on: connection) }
        defer { state.update { $0.finish(entry, path: request.path) } }
        if let instead = plan.instead {
            try await writer.end(instead)
            return false
        }
        if plan.garbage == nil {
            state.update { if $0.requests.indices.contains(entry) { $0.requests[entry].status = plan.status } }
        }
        try await writer.sendHead(plan)
        if plan.garbage != nil {
            try await writer.end(.close)
            return false
        }
        if !plan.omitsBody { try await sendBody(plan, request: request, entry: entry, by: writer) }
        try await writer.end(plan.ending)
        return plan.ending == .keepAlive && plan.framing != .close
            && request.header("Connection")?.lowercased() != "close"
    }

    private func sendBody(
        _ plan: ResponsePlan,
        request: OriginRequest,
        entry: Int,
        by writer: some ResponseWriter
    ) async throws {
        let path = request.path
        let signature = request.parameter("signature")
        let end = min(plan.bodyLength, plan.stopsAfterBytes ?? .max)
        var goAway = plan.goAway
        var sent: Int64 = 0
        let started = ContinuousClock.now
        for segment in plan.segments {
            var offset: Int64 = 0
            while offset < segment.count, sent < end {
                if let due = goAway, due.afterBytes <= sent {
                    try await writer.sendGoAway(isFinished: due.isFinished)
                    goAway = nil
                }
                let open = plan.isGated ? try await waitForGate(path, sent: sent, by: writer) : .max
                let rate = state.value.bytesPerSecond
                let piece = plan.pace?.bytes ?? min(Self.pieceBytes, rate.map { max(1, $0 / 20) } ?? Self.pieceBytes)
                let mark = goAway?.afterBytes ?? .max
                let count = min(Int64(piece), segment.count - offset, end - sent, open - sent, mark - sent)
                let bytes = segment.bytes(offset: offset, count: count, corruptOffsets: plan.corruptOffsets)
                try await writer.sendBody(bytes, plan)
                offset += count
                sent += count
                state.update { $0.sent(count, entry: entry, path: path, signature: signature) }
                if let pace = plan.pace { try await Task.sleep(for: pace.every) }
                if let rate {
                    // As many bytes as the time since the beginning allows, so that short delays do not add up.
                    try await Task.sleep(until: started + .seconds(Double(sent) / Double(rate)), clock: .continuous)
                }
            }
        }
        if let due = goAway { try await writer.sendGoAway(isFinished: due.isFinished) }
        // A gate at the very end of the body holds back the end of the response.
        if plan.isGated { _ = try await waitForGate(path, sent: sent, by: writer) }
        try await writer.endBody(plan)
    }

    /// Waits while the path's gate is shut here, and returns the offset up to which it is open.
    private func waitForGate(_ path: String, sent: Int64, by writer: some ResponseWriter) async throws -> Int64 {
        if let gate = state.value.gates[path], gate <= sent {
            try await untilClosed(writer.channel) {
                try await state.wait(for: "the gate of \(path)", limit: nil) { ($0.gates[path] ?? .max) > sent }
            }
        }
        return max(state.value.gates[path] ?? .max, sent + 1)
    }

    /// Waits for something, and gives up when the connection ends.
    private func untilClosed(_ channel: any Channel, _ body: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await channel.untilClosed()
                throw ChannelError.ioOnClosedChannel
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}

extension ResponsePlan.Segment {
    /// Some of its bytes; the bytes of the file at `corruptOffsets` are altered.
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
