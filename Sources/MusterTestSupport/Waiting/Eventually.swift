/// Asks repeatedly until there is an answer: for conditions that give no signal, such as the state of a process on the
/// other side of HTTP.
///
/// - Throws: ``TimedOut`` when there is none within the limit.
public func eventually<Answer>(
    _ what: String,
    limit: Duration = TimedOut.defaultLimit,
    isolation: isolated (any Actor)? = #isolation,
    _ ask: () async throws -> Answer?
) async throws -> Answer {
    let deadline = ContinuousClock.now + limit
    while true {
        if let answer = try await ask() { return answer }
        guard ContinuousClock.now < deadline else { throw TimedOut(what: what, limit: limit, details: "") }
        try await Task.sleep(for: .milliseconds(20))
    }
}

/// The same for a condition.
public func eventually(
    _ what: String,
    limit: Duration = TimedOut.defaultLimit,
    isolation: isolated (any Actor)? = #isolation,
    isTrue: () async throws -> Bool
) async throws {
    try await eventually(what, limit: limit) { () async throws -> Void? in try await isTrue() ? () : nil }
}
