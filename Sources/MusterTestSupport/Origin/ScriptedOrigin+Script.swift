extension ScriptedOrigin {
    /// Serves a file at a path, in place of what was there. Its misbehaviours and its count of requests stay.
    public func serve(_ path: String, _ file: File) {
        state.update { $0.files[path] = file }
    }

    /// Serves no file at a path any more: 404.
    public func remove(_ path: String) {
        state.update { $0.files[path] = nil }
    }

    /// Adds a misbehaviour to a path. The path needs no file if the misbehaviour sends none. Several apply together, in
    /// the order in which they were added.
    public func misbehave(_ path: String, _ misbehaviour: Misbehaviour, when condition: Condition = .always) {
        let rule = Rule(misbehaviour: misbehaviour, condition: condition)
        state.update { $0.rules[path, default: []].append(rule) }
    }

    /// Speaks HTTP/2 over TLS on each connection from now on, also where the client did not offer it.
    public func speakHTTP2Alone() {
        state.update { $0.speaksHTTP2Alone = true }
    }

    /// Removes all misbehaviours from a path, those at random too.
    public func behave(_ path: String) {
        state.update {
            $0.rules[path] = nil
            $0.randomRules[path] = nil
        }
    }

    /// Holds back every response for a path after this many bytes of its body, until ``release(_:)``; refusals are not held back.
    public func hold(_ path: String, afterBytes bytes: Int64) {
        state.update { $0.gates[path] = bytes }
    }

    /// Lets the responses for a path go on.
    public func release(_ path: String) {
        state.update { $0.gates[path] = nil }
    }

    /// Limits every response to this many bytes of body a second; nil is no limit. Responses under way follow.
    public func limitRate(bytesPerSecond: Int?) {
        state.update { $0.bytesPerSecond = bytesPerSecond }
    }

    /// Refuses requests (24: 403, 404, 429, 503, a close, a reset) while this many responses are under way for any path;
    /// nil is no limit. ``Misbehaviour/limit(responses:otherwise:)`` does it for a path.
    public func limitResponses(to count: Int?, otherwise refusal: Refusal = 503) {
        state.update { $0.responseLimit = count.map { (count: $0, refusal: refusal) } }
    }

    /// Refuses connections (24) while this many are open; nil is no limit. Refused connections do not count.
    public func limitConnections(to count: Int?, otherwise refusal: Refusal = 503) {
        state.update { $0.connectionLimit = count.map { (count: $0, refusal: refusal) } }
    }

    /// Refuses these connections, counting those of the origin from 0: ``Refusal/hang`` accepts and then says nothing, not
    /// even in the handshake of TLS (33).
    public func refuseConnections(_ connections: Range<Int> = 0..<Int.max, _ refusal: Refusal) {
        state.update { $0.connectionRules.append((connections: connections, refusal: refusal)) }
    }

    /// Accepts all connections again, after ``refuseConnections(_:_:)``.
    public func acceptConnections() {
        state.update { $0.connectionRules = [] }
    }

    /// All requests so far, in the order of their arrival.
    public var requests: [Request] { state.value.requests }

    /// The requests for a path so far.
    public func requests(for path: String) -> [Request] { requests.filter { $0.path == path } }

    /// Forgets the requests so far, and counts those of each path from 0 again.
    ///
    /// Call it only while no response is under way: such a response still updates the log.
    public func forgetRequests() {
        state.update {
            $0.requests = []
            $0.counts = [:]
            $0.bytesSentOnPath = [:]
        }
    }

    /// How many connections there have been.
    public var connectionCount: Int { state.value.connections }
    /// How many connections are open.
    public var openConnectionCount: Int { state.value.openConnections }
    /// How many connections were refused.
    public var refusedConnectionCount: Int { state.value.refusedConnections }
    /// How many handshakes of TLS failed, or were abandoned by the client.
    public var failedHandshakeCount: Int { state.value.failedHandshakes }
    /// The most responses that were under way at a time.
    public var mostActiveResponses: Int { state.value.mostActiveResponses }

    /// How many bytes of body were sent for a path, over all its responses.
    public func bytesSent(_ path: String) -> Int64 { Self.bytesSent(path, in: state.value) }

    /// Waits until this many bytes of body were sent for a path, over all its responses.
    public func waitUntil(
        _ path: String,
        bytesSent bytes: Int64,
        limit: Duration = TimedOut.defaultLimit
    ) async throws {
        try await state.wait(for: "\(bytes) bytes sent of \(path)", limit: limit, details: Self.report) {
            Self.bytesSent(path, in: $0) >= bytes
        }
    }

    /// Waits for a request that fulfils a condition, and returns the first such; it may have come before the call.
    @discardableResult
    public func waitForRequest(
        limit: Duration = TimedOut.defaultLimit,
        matching condition: @escaping @Sendable (Request) -> Bool
    ) async throws -> Request {
        let seen = try await state.wait(for: "a matching request", limit: limit, details: Self.report) {
            $0.requests.contains(where: condition)
        }
        guard let request = seen.requests.first(where: condition) else {
            throw TimedOut(what: "a matching request", limit: limit, details: Self.report(seen))
        }
        return request
    }

    /// Waits until there were at least `count` requests for a path.
    public func waitForRequests(
        _ path: String,
        count: Int,
        limit: Duration = TimedOut.defaultLimit
    ) async throws {
        try await state.wait(for: "\(count) requests for \(path)", limit: limit, details: Self.report) { state in
            state.requests.count { $0.path == path } >= count
        }
    }

    /// Waits until at least `count` connections have come.
    public func waitForConnections(atLeast count: Int, limit: Duration = TimedOut.defaultLimit) async throws {
        try await state.wait(for: "\(count) connections", limit: limit, details: Self.report) {
            $0.connections >= count
        }
    }

    /// Waits until at most `count` connections are open.
    public func waitForOpenConnections(atMost count: Int, limit: Duration = TimedOut.defaultLimit) async throws {
        try await state.wait(for: "at most \(count) open connections", limit: limit, details: Self.report) {
            $0.openConnections <= count
        }
    }

    private static func bytesSent(_ path: String, in state: State) -> Int64 {
        state.requests.reduce(0) { $1.path == path ? $0 + $1.bodyBytesSent : $0 }
    }

    /// The last requests, for an error message.
    @Sendable
    private static func report(_ state: State) -> String {
        state.requests.suffix(50).map { request in
            "#\(request.number) on connection \(request.connection): \(request.method) \(request.target) "
                + "range=\(request.range ?? "-") status=\(request.status) sent=\(request.bodyBytesSent) "
                + "finished=\(request.isFinished)"
        }.joined(separator: "\n")
    }
}
