import MusterCore
import MusterPostgres

/// A request that changes something, as its caller names it (`Idempotency-Key`, I10).
public struct NamedRequest: Sendable, Hashable {
    /// The name, unique among requests.
    public let key: String
    /// A digest of what is asked for.
    public let about: String

    /// A request.
    public init(key: String, about: String) {
        self.key = key
        self.about = about
    }
}

/// The stored answer to a request.
public struct RequestAnswer: Sendable, Hashable {
    /// The HTTP status: 2xx, 404 or 409.
    public let status: Int32
    /// The body.
    public let body: String

    /// An answer.
    public init(status: Int32, body: String) {
        self.status = status
        self.body = body
    }
}

/// Requests that are done once. Each of their transactions begins with `claim_request`, which refuses the transaction once
/// the request has been answered (I10, fault F7).
extension Store {
    /// The request that the current Swift task serves; `nil` for background work and for requests without a key.
    @TaskLocal public static var request: NamedRequest?

    /// The request was answered elsewhere while it was served here. The caller reads that answer and does nothing else.
    public struct RequestAnswered: Error {}

    /// The stored answer to a request; `nil` if there is none yet.
    ///
    /// - Throws: `Refusal.keyReused` if the key belongs to another request.
    public func answer(to request: NamedRequest) async throws -> RequestAnswer? {
        let rows = try await query("SELECT about, status, answer FROM requests WHERE key = \(request.key)")
        guard let row = rows.first else { return nil }
        guard try row.decode("about", as: String.self) == request.about else { throw Refusal.keyReused }
        guard let status = try row.decode("status", as: Int32?.self) else { return nil }
        return RequestAnswer(status: status, body: try row.decode("answer"))
    }

    /// Stores the answer to a request. From then on the request changes nothing any more.
    ///
    /// - Returns: the answer, or the answer of another process that was stored first.
    public func keep(_ answer: RequestAnswer, to request: NamedRequest) async throws -> RequestAnswer {
        let row = try await query(
            """
            INSERT INTO requests (key, about, status, answer)
            SELECT \(request.key), \(request.about), \(answer.status), \(answer.body)
            -- What is not done again by its effect need not wait for the disk.
            FROM set_config('synchronous_commit', CASE WHEN EXISTS (
                SELECT FROM requests r WHERE r.key = \(request.key) AND r.effect IS NOT NULL
            ) THEN 'off' ELSE current_setting('synchronous_commit') END, true)
            ON CONFLICT (key) DO UPDATE SET status = coalesce(requests.status, EXCLUDED.status),
                answer = coalesce(requests.answer, EXCLUDED.answer)
            RETURNING status, answer
            """)[0]
        return RequestAnswer(status: try row.decode("status"), body: try row.decode("answer"))
    }

    /// Stores the refusal of a request, unless another process has begun to serve it. In that case, waits for the answer of
    /// that process: what it has done may be the reason for this refusal.
    ///
    /// - Returns: the answer of the other process; `nil` if the request is refused.
    public func keep(refusal: RequestAnswer, of request: NamedRequest) async throws -> RequestAnswer? {
        let kept = try await query(
            """
            INSERT INTO requests (key, about, status, answer)
            VALUES (\(request.key), \(request.about), \(refusal.status), \(refusal.body)) ON CONFLICT (key) DO NOTHING RETURNING key
            """)
        guard kept.isEmpty else { return nil }
        // The other process has usually answered by now. It may also have died, so the wait is bounded (2 s).
        for _ in 0..<20 {
            if let answer = try await answer(to: request) { return answer }
            try await Task.sleep(for: .milliseconds(100))
        }
        return nil
    }

    /// Deletes requests that are older than `age`. Returns their number; there may be more if it equals `limit`.
    public func dropRequests(olderThan age: Duration, limit: Int32 = 2_000) async throws -> Int64 {
        try await count(
            """
            WITH dropped AS (
                DELETE FROM requests WHERE key IN (
                    SELECT r.key FROM requests r
                    WHERE r.at < statement_timestamp() - \(age.milliseconds)::bigint * interval '1 ms'
                    ORDER BY r.at LIMIT \(limit))
                RETURNING 1
            )
            SELECT count(*) AS count FROM dropped
            """, waking: [])
    }

    /// Runs a transaction that may be repeated, even when the outcome of its commit is unknown (fault F6), and wakes what
    /// waits for its changes.
    func transaction<Answer: Sendable>(
        waking wake: Wake, _ body: @Sendable (PostgresConnection) async throws -> Answer
    ) async throws -> Answer {
        try await claimed(waking: wake, isRepeatable: true) { connection, _ in try await body(connection) }
    }

    /// Runs a transaction that a request runs only once; a request has at most one. Its effect is stored with the request,
    /// and a repetition of the request gets the stored effect. For a request without a key, the transaction is not repeated
    /// when the outcome of its commit is unknown.
    func once<Effect: Codable & Sendable>(
        waking wake: Wake, _ body: @Sendable (PostgresConnection) async throws -> Effect
    ) async throws -> Effect {
        try await claimed(waking: wake, isRepeatable: Self.request != nil) { connection, earlier in
            if let earlier {
                return try StoredJSON.document(
                    Effect.self, earlier, column: "requests.effect", of: Self.request?.key ?? "")
            }
            let effect = try await body(connection)
            if let request = Self.request {
                let json = try StoredJSON.text(effect).map { PostgresJSON($0) }
                _ = try await connection.query("UPDATE requests SET effect = \(json) WHERE key = \(request.key)")
            }
            return effect
        }
    }

    /// Runs one statement that changes something, in a transaction that claims the request if there is one.
    ///
    /// - Parameter limit: for a statement that may take longer than others.
    func change(_ sql: SQL, limit: Duration? = nil) async throws -> PostgresRows {
        guard Self.request != nil || limit != nil else { return try await query(sql) }
        let deadline = limit.map { ContinuousClock.now + $0 }
        return try await transaction(waking: []) { connection in
            guard let deadline else { return try await connection.query(sql) }
            return try await Self.query(sql, within: deadline - .now, on: connection)
        }
    }

    /// Runs a statement of a transaction that may take longer than others. The longer limit holds for the rest of the
    /// transaction.
    static func query(
        _ sql: SQL, within limit: Duration, on connection: PostgresConnection
    ) async throws -> PostgresRows {
        _ = try await connection.query("SELECT set_config('statement_timeout', \("\(limit.milliseconds)"), true)")
        return try await connection.query(sql, deadline: .now + limit)
    }

    private func claimed<Answer: Sendable>(
        waking wake: Wake, isRepeatable: Bool,
        _ body: @Sendable (PostgresConnection, _ earlier: String?) async throws -> Answer
    ) async throws -> Answer {
        var tries = 0
        while true {
            do {
                let answer = try await pool.withTransaction { connection in
                    try await body(connection, try await Self.claim(on: connection))
                }
                self.wake(wake)
                return answer
            } catch let error as PostgresError where error.constraint == "requests_answered" {
                throw RequestAnswered()
            } catch let error as PostgresError where error.constraint == "requests_about" {
                throw Refusal.keyReused
            } catch let error as PostgresError where isRepeatable && tries < 4 && error.lostAnswer {
                tries += 1
            }
        }
    }

    /// Claims the request under way. Returns the stored effect of its earlier transaction, which is not run again.
    private static func claim(on connection: PostgresConnection) async throws -> String? {
        guard let request else { return nil }
        return try await connection.query("SELECT claim_request(\(request.key), \(request.about))::text AS effect")[0]
            .decode("effect", as: String?.self)
    }
}
