import MusterCore
import MusterPostgres

/// A request that changes something, as its caller names it (`Idempotency-Key`, I10).
public struct NamedRequest: Sendable, Hashable {
    /// The name, which no other request has.
    public let key: String
    /// A digest of what is asked for.
    public let about: String

    /// A request.
    public init(key: String, about: String) {
        self.key = key
        self.about = about
    }
}

/// What a request was answered.
public struct RequestAnswer: Sendable, Hashable {
    /// The status, of 2xx, or 404 or 409.
    public let status: Int32
    /// The body.
    public let body: String

    /// An answer.
    public init(status: Int32, body: String) {
        self.status = status
        self.body = body
    }
}

/// Requests that are done once: every transaction of one begins with `claim_request`, which refuses it once the request has been answered (I10, fault F7).
extension Store {
    /// The request that the current task serves; `nil` where nobody asked, or the caller gave it no name.
    @TaskLocal public static var request: NamedRequest?

    /// A request was answered while it was served here: its answer is to be read, and nothing is to be done.
    public struct RequestAnswered: Error {}

    /// What a request was answered before; `nil` where it was not.
    ///
    /// - Throws: `Refusal.keyReused` where its key was another request's.
    public func answer(to request: NamedRequest) async throws -> RequestAnswer? {
        let rows = try await query("SELECT about, status, answer FROM requests WHERE key = \(request.key)")
        guard let row = rows.first else { return nil }
        guard try row.decode("about", as: String.self) == request.about else { throw Refusal.keyReused }
        guard let status = try row.decode("status", as: Int32?.self) else { return nil }
        return RequestAnswer(status: status, body: try row.decode("answer"))
    }

    /// Keeps what a request is answered: from now on nothing is done for it any more.
    ///
    /// - Returns: the answer, or that of another process which came first.
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

    /// Keeps that a request is refused, unless another process has begun to do it, whose answer is waited for then. What it did may be why this one refuses.
    ///
    /// - Returns: the answer of the other one; `nil` where the request is refused.
    public func keep(refusal: RequestAnswer, of request: NamedRequest) async throws -> RequestAnswer? {
        let kept = try await query(
            """
            INSERT INTO requests (key, about, status, answer)
            VALUES (\(request.key), \(request.about), \(refusal.status), \(refusal.body)) ON CONFLICT (key) DO NOTHING RETURNING key
            """)
        guard kept.isEmpty else { return nil }
        // It has answered as a rule by now, and may be gone.
        for _ in 0..<20 {
            if let answer = try await answer(to: request) { return answer }
            try await Task.sleep(for: .milliseconds(100))
        }
        return nil
    }

    /// Forgets requests that are older than `age`. Returns how many; there may be more when it is `limit`.
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
            """, waking: .nobody)
    }

    /// Runs a transaction that may be repeated, also when nobody knows whether it was committed (fault F6), and wakes those who wait
    /// for what it changes.
    func transaction<Answer: Sendable>(
        waking wake: Wake, _ body: @Sendable (PostgresConnection) async throws -> Answer
    ) async throws -> Answer {
        try await claimed(waking: wake, isRepeatable: true) { connection, _ in try await body(connection) }
    }

    /// Runs the transaction of a request that is not run again for it, of which there is one: what it answered is known from then on.
    /// For a request without a name it is not repeated either when nobody knows whether it was committed.
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

    /// Runs one statement that changes something.
    func change(_ sql: SQL, deadline: ContinuousClock.Instant? = nil) async throws -> PostgresRows {
        guard Self.request != nil else { return try await query(sql, deadline: deadline) }
        return try await transaction(waking: .nobody) { try await $0.query(sql, deadline: deadline) }
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
            } catch let error as PostgresError where isRepeatable && tries < 4 && error.outcomeUnknown {
                tries += 1
            }
        }
    }

    /// What was done before for the request under way, and is not to be done again.
    private static func claim(on connection: PostgresConnection) async throws -> String? {
        guard let request else { return nil }
        return try await connection.query("SELECT claim_request(\(request.key), \(request.about))::text AS effect")[0]
            .decode("effect", as: String?.self)
    }
}
