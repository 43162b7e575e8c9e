public import MusterCore
import MusterPostgres

/// Checks of the database against the sinks (adr/0048), as their callers and the workers see them.
extension Store {
    /// The most findings that are kept of a check, apart from those of the last page; as in `has_room_for_findings`.
    static let findingsKept: Int64 = 10_000

    /// Begins a check, or joins the same check if that is under way. Forgets all but the last checks.
    ///
    /// - Parameter sinks: the sinks; empty for all that groups or live workers use.
    /// - Throws: `Refusal.noSuchSink`; `Refusal.checkUnderWay` if another check is under way.
    /// - Returns: its number.
    public func beginCheck(isDeep: Bool, repairs: Bool, sinks: [String]) async throws -> Int64 {
        let names = Set(sinks).sorted()
        let unknown = try await query(
            "SELECT u.sink FROM unnest(\(names)) AS u (sink) WHERE u.sink <> ALL (known_sinks(false)) ORDER BY 1 LIMIT 1"
        )
        if let row = unknown.first {
            let sink: String = try row.decode("sink")
            throw Refusal.noSuchSink(sink, place: sinks.firstIndex(of: sink) ?? 0)
        }
        return try await once(waking: []) { connection -> Int64 in
            let rows = try await connection.query("SELECT begin_check(\(isDeep), \(repairs), \(names)) AS id")
            if let id = try rows[0].decode("id", as: Int64?.self) { return id }
            // The transaction is rolled back: the refusal passes, and is no effect that a repeated request gets.
            throw Refusal.checkUnderWay(try Self.runningCheck(in: try await connection.query(Self.running)))
        }
    }

    private static let running: SQL =
        """
        SELECT id, deep, repair, sinks, greatest(0, extract(epoch FROM statement_timestamp() - begun_at))::bigint AS age
        FROM checks WHERE finished_at IS NULL
        """

    private static func runningCheck(in rows: PostgresRows) throws -> RunningCheck? {
        guard let row = rows.first else { return nil }
        return RunningCheck(
            id: try row.decode("id"), isDeep: try row.decode("deep"), repairs: try row.decode("repair"),
            sinks: try row.decode("sinks"), age: .seconds(try row.decode("age", as: Int64.self)))
    }

    /// The check that is under way; `nil` if there is none.
    public func runningCheck() async throws -> RunningCheck? {
        try Self.runningCheck(in: try await query(Self.running))
    }

    /// A check by its number.
    ///
    /// - Throws: `Refusal.noSuchCheck`.
    public func check(_ id: Int64) async throws -> CheckRecord {
        guard let check = try await checks(where: "c.id = \(id)").first else { throw Refusal.noSuchCheck(id) }
        return check
    }

    /// The checks that are kept, the latest first: 16 at the most.
    public func checks() async throws -> [CheckRecord] { try await checks(where: "true") }

    private func checks(where condition: SQL) async throws -> [CheckRecord] {
        let notes = FindingKind.allCases.filter(\.isNote).map(\.rawValue)
        let rows = try await query(
            """
            SELECT c.id, c.deep, c.repair, c.looks = 2 AS is_looked, c.failure, c.stopped, c.begun_at, c.finished_at, n.*
            FROM checks c CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE o.outcome = 'found' AND f.kind <> ALL (\(notes))) AS found,
                    count(*) FILTER (WHERE o.outcome IN ('pending', 'repaired')) AS repaired,
                    count(*) FILTER (WHERE o.outcome = 'found' AND f.kind = ANY (\(notes))) AS notes,
                    count(*) >= \(Self.findingsKept) OR c.is_cut
                        OR EXISTS (SELECT 1 FROM check_walks k WHERE k.check_id = c.id AND k.is_cut) AS is_cut
                FROM check_findings f CROSS JOIN LATERAL (SELECT outcome_of(f, c) AS outcome) AS o
                WHERE f.check_id = c.id AND f.outcome <> 'seen'
            ) AS n WHERE \(condition) ORDER BY c.id DESC
            """)
        var checks: [CheckRecord] = []
        for row in rows {
            let id: Int64 = try row.decode("id")
            checks.append(
                CheckRecord(
                    id: id, isDeep: try row.decode("deep"), repairs: try row.decode("repair"),
                    areRowsDone: try row.decode("is_looked"), failure: try row.decode("failure"),
                    isStopped: try row.decode("stopped"), begunAt: Timestamp(try row.decode("begun_at")),
                    finishedAt: try row.moment("finished_at"), found: try row.decode("found"),
                    repaired: try row.decode("repaired"), notes: try row.decode("notes"),
                    isCut: try row.decode("is_cut"), walks: try await walks(of: id)))
        }
        return checks
    }

    private func walks(of check: Int64) async throws -> [CheckRecord.Walk] {
        try await query(
            """
            SELECT k.sink, k.phase, k.files, k.parts, k.bytes, k.unproven,
                (SELECT s.worker FROM sessions s WHERE s.id = k.session_id AND can_check(s, k.sink)) AS worker,
                (SELECT count(*) FROM sessions s WHERE can_check(s, k.sink)) AS reaching
            FROM check_walks k WHERE k.check_id = \(check) ORDER BY k.sink
            """
        ).map { row in
            CheckRecord.Walk(
                sink: try row.decode("sink"), phase: try row.decode("phase"), worker: try row.decode("worker"),
                workersReaching: try row.decode("reaching"), files: try row.decode("files"),
                parts: try row.decode("parts"), bytes: try row.decode("bytes"), unproven: try row.decode("unproven"))
        }
    }

    /// A page of what a check has found, in the order of the findings.
    ///
    /// - Parameter after: the number of the last finding of the page before; 0 for the first page.
    /// - Throws: `Refusal.noSuchCheck`.
    public func findings(of check: Int64, after: Int64, limit: Int32) async throws -> [FindingRecord] {
        let rows = try await query(
            """
            SELECT f.serial, f.kind, f.sink, f.subject, f.group_name, f.key, f.detail, outcome_of(f, c) AS outcome
            FROM check_findings f JOIN checks c ON c.id = f.check_id
            WHERE f.check_id = \(check) AND f.serial > \(after) AND f.outcome <> 'seen' ORDER BY f.serial LIMIT \(limit)
            """)
        if rows.isEmpty, try await query("SELECT id FROM checks WHERE id = \(check)").isEmpty {
            throw Refusal.noSuchCheck(check)
        }
        return try rows.map { row in
            let (kind, outcome): (String, String) = (try row.decode("kind"), try row.decode("outcome"))
            guard let known = FindingKind(rawValue: kind), let state = FindingRecord.Outcome(rawValue: outcome) else {
                throw StoredValueError(
                    column: "check_findings.kind", row: "check \(check)", requested: "FindingKind",
                    problem: "it is unknown")
            }
            return FindingRecord(
                serial: try row.decode("serial"), kind: known, sink: try row.decode("sink"),
                subject: try row.decode("subject"), group: try row.decode("group_name"), key: try row.decode("key"),
                detail: try row.decode("detail"), outcome: state)
        }
    }

    /// Ends a check before it is complete. What it has found stays; what it was to repair is left as it is (`outcome_of`).
    public func stopCheck(_ id: Int64) async throws {
        let rows = try await write(
            """
            WITH stopped AS (
                UPDATE checks SET finished_at = statement_timestamp(), stopped = true
                WHERE id = \(id) AND finished_at IS NULL
            )
            SELECT id FROM checks WHERE id = \(id)
            """, waking: [])
        if rows.isEmpty { throw Refusal.noSuchCheck(id) }
    }

    /// The walks that have not ended of the check that is under way.
    public func openWalks() async throws -> [OpenWalk] {
        try await query(
            """
            SELECT k.sink, s.id AS holder FROM check_walks k JOIN checks c ON c.id = k.check_id AND c.finished_at IS NULL
            LEFT JOIN sessions s ON s.id = k.session_id AND can_check(s, k.sink)
            WHERE k.phase <> 'done' ORDER BY k.sink
            """
        ).map { row in
            OpenWalk(sink: try row.decode("sink"), holder: try row.decode("holder", as: SessionID?.self))
        }
    }

    /// Takes what a session reports of a check, and returns what it is to look at next (`check_step`); `nil` if there is
    /// nothing for it. Harmless when repeated.
    public func checkStep(of session: SessionID, report: CheckReport?) async throws -> CheckOrder? {
        let json = try StoredJSON.text(report).map { PostgresJSON($0) }
        let page: String? = try await write("SELECT check_step(\(session), \(json))::text AS page", waking: [])[0]
            .decode("page")
        return try StoredJSON.document(
            CheckOrder.self, ifAny: page, column: "check_walks", of: "session \(session)")
    }
}
