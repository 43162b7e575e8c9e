import NIOCore

extension ScriptedOrigin {
    /// The whole state of an origin. Planning a response changes it.
    struct State: Sendable {
        var files: [String: File] = [:]
        var transport: Transport
        var rules: [String: [Rule]] = [:]
        var randomRules: [String: RandomRule] = [:]
        var counts: [String: Int] = [:]
        var gates: [String: Int64] = [:]
        var signatures = Signatures()
        var resolvers: [String: Resolution] = [:]
        var requests: [Request] = []
        var connections = 0
        /// The open connections by number, whether they are served yet or not.
        var channels: [Int: any Channel] = [:]
        var openConnections = 0
        var admittedConnections = 0
        var refusedConnections = 0
        var failedHandshakes = 0
        var activeResponses = 0
        var activeOnPath: [String: Int] = [:]
        var bytesSentOnPath: [String: Int64] = [:]
        var mostActiveResponses = 0
        var responseLimit: (count: Int, refusal: Refusal)?
        var connectionLimit: (count: Int, refusal: Refusal)?
        var connectionRules: [(connections: Range<Int>, refusal: Refusal)] = []
        var bytesPerSecond: Int?
        var speaksHTTP2Alone = false
    }

    /// What the requests of one connection have in common.
    struct ConnectionFacts: Sendable {
        let number: Int
        let wire: Wire
        let hasClientCertificate: Bool
        /// How a refused connection answers its first request; nil if it was accepted.
        let refusal: Refusal?
    }
}

extension ScriptedOrigin.State {
    /// Counts a connection; returns its number, and how it is refused, nil if it is not.
    mutating func accept(_ channel: any Channel) -> (number: Int, refusal: ScriptedOrigin.Refusal?) {
        let number = connections
        channels[number] = channel
        connections += 1
        openConnections += 1
        var refusal = connectionRules.first { $0.connections.contains(number) }?.refusal
        if refusal == nil, let connectionLimit, admittedConnections >= connectionLimit.count {
            refusal = connectionLimit.refusal
        }
        if refusal == nil { admittedConnections += 1 } else { refusedConnections += 1 }
        return (number, refusal)
    }

    /// Counts the end of a connection.
    mutating func leave(wasRefused: Bool) {
        openConnections -= 1
        if !wasRefused { admittedConnections -= 1 }
    }

    /// Notes a request, and plans its response.
    mutating func begin(
        _ request: OriginRequest,
        on connection: ScriptedOrigin.ConnectionFacts
    ) -> (entry: Int, plan: ResponsePlan) {
        let entry = requests.count
        requests.append(
            ScriptedOrigin.Request(
                number: entry,
                connection: connection.number,
                version: connection.wire.version,
                hasClientCertificate: connection.hasClientCertificate,
                method: request.method,
                target: request.target,
                path: request.path,
                headers: request.headers,
                body: request.body,
                misbehaviours: [],
                status: 0,
                bodyBytesSent: 0,
                isFinished: false
            )
        )
        let plan = plan(request, entry: entry, on: connection)
        activeResponses += 1
        activeOnPath[request.path, default: 0] += 1
        mostActiveResponses = max(mostActiveResponses, activeResponses)
        return (entry, plan)
    }

    /// Notes bytes of a body that were sent.
    mutating func sent(_ count: Int64, entry: Int, path: String, signature: String?) {
        bytesSentOnPath[path, default: 0] += count
        signatures.spend(count, by: signature)
        if requests.indices.contains(entry) { requests[entry].bodyBytesSent += count }
    }

    /// Notes the end of a response.
    mutating func finish(_ entry: Int, path: String) {
        activeResponses -= 1
        activeOnPath[path, default: 1] -= 1
        if requests.indices.contains(entry) { requests[entry].isFinished = true }
    }

    private mutating func plan(
        _ request: OriginRequest,
        entry: Int,
        on connection: ScriptedOrigin.ConnectionFacts
    ) -> ResponsePlan {
        var failed = ResponsePlan()
        failed.omitsBody = request.method == "HEAD"
        if let refusal = connection.refusal {
            failed.refuse(refusal)
            if failed.instead == nil { failed.ending = .close }
            return failed
        }
        let resolution = request.method == "POST" ? resolvers[request.path] : nil
        guard request.method == "GET" || request.method == "HEAD" || resolution != nil else {
            failed.replaceBody(status: 405, contentType: "text/plain", text: "GET and HEAD only\n")
            failed.set("Allow", "GET, HEAD")
            return failed
        }
        if let responseLimit, activeResponses >= responseLimit.count {
            failed.refuse(responseLimit.refusal)
            return failed
        }
        let number = counts[request.path, default: 0]
        counts[request.path] = number + 1
        let range = OriginRange(request.header("Range"))
        var applying = applying(
            to: request.path,
            in: ScriptedOrigin.Condition.Situation(
                request: request,
                number: number,
                range: range,
                connection: connection.number,
                bytesSent: bytesSentOnPath[request.path, default: 0],
                version: connection.wire.version
            )
        )
        applying.removeAll { !$0.isPlayable(over: connection.wire) }
        requests[entry].misbehaviours = applying
        let answer = resolution.map { ScriptedOrigin.File(.bytes(Array(resolve($0, request).utf8))) }
        guard let file = answer ?? files[request.path] ?? (applying.isEmpty ? nil : ScriptedOrigin.File(.empty)) else {
            failed.replaceBody(status: 404, contentType: "text/plain", text: "no such file\n")
            return failed
        }
        if let refusal = signatures.refusal(of: request) {
            failed.replaceBody(status: refusal, contentType: "text/plain", text: "not or no longer signed\n")
            return failed
        }
        let asked = ResponsePlan.Asked(
            request: request,
            range: range,
            number: number,
            activeOnPath: activeOnPath[request.path, default: 0],
            hasClientCertificate: connection.hasClientCertificate,
            freshURL: freshURL(for: applying)
        )
        return ResponsePlan.make(file: file, asked: asked, misbehaviours: applying)
    }

    /// The misbehaviours of a request: those of the rules, and a random one.
    private func applying(
        to path: String,
        in situation: ScriptedOrigin.Condition.Situation
    ) -> [ScriptedOrigin.Misbehaviour] {
        let ruled = (rules[path] ?? []).filter { $0.condition.holds(situation) }.map(\.misbehaviour)
        let random = randomRules[path]?.misbehaviour(path: path, number: situation.number, over: transport)
        return ruled + (random.map { [$0] } ?? [])
    }

    /// Signs a URL if one of the misbehaviours redirects to a signed one.
    private mutating func freshURL(for misbehaviours: [ScriptedOrigin.Misbehaviour]) -> String? {
        for case .redirectToSigned(let path, _) in misbehaviours { return signatures.issue(path) }
        return nil
    }
}
