import MusterCore
import MusterPostgres

/// What coordinators do for a check: they look at the rows of the database, repair what was found, and end the check.
extension Store {
    /// The most findings that one round repairs.
    private static let repairsPerRound: Int32 = 200

    /// Findings of contradictory rows that are kept of a check; one more says that there are more.
    private static let brokenRowsKept: Int64 = 1_000

    /// The check has ended while its rows were looked at: what the look has seen does not count.
    private struct CheckIsOver: Error {}

    /// Does what is due of the check that is under way, if there is one. Several coordinators may call it at once.
    public func advanceCheck() async throws {
        let rows = try await query(
            "SELECT c.id, c.repair, is_look_due(c) AS is_due FROM checks c WHERE c.finished_at IS NULL")
        guard let row = rows.first else { return }
        let check: Int64 = try row.decode("id")
        let (isDue, repairs): (Bool, Bool) = (try row.decode("is_due"), try row.decode("repair"))
        if isDue { try await lookAtRows(of: check) }
        if repairs { try await repairFindings(of: check) }
        _ = try await write("SELECT end_check()::text", waking: [])
    }

    /// Looks at the rows of the database. What the first look has seen counts if the second one, some seconds later, sees it
    /// too: the sweep takes a moment to take back the leases of a session that has just ended.
    ///
    /// A look that fails by itself would fail each time (I12): the reason is stored, and what one look has seen is dropped.
    private func lookAtRows(of check: Int64) async throws {
        let failure: String
        do {
            try await transaction(waking: []) { try await Self.look(atRowsOf: check, on: $0) }
            return
        } catch is CheckIsOver {
            return
        } catch let error as PostgresError {
            guard let reason = Self.lastingFailure(error) else { throw error }
            failure = reason
        }
        _ = try await write(
            """
            WITH failed AS (
                UPDATE checks SET looks = 2, failure = left(\(failure), 500)
                WHERE id = \(check) AND finished_at IS NULL AND looks < 2 RETURNING id
            )
            DELETE FROM check_findings f USING failed c WHERE f.check_id = c.id AND f.outcome = 'seen'
            """, waking: [])
    }

    /// Why a look at the rows has failed, if that does not pass with an outage of the database.
    private static func lastingFailure(_ error: PostgresError) -> String? {
        if error.sqlState == .queryCanceled { return "it took too long to read the rows of the database" }
        guard case .server = error, !error.isUnavailable else { return nil }
        return "\(error)"
    }

    /// Looks at the rows once, unless another coordinator does. It takes a lock of its own and not that of the check's row,
    /// which whatever ends the check needs (I19).
    private static func look(atRowsOf check: Int64, on connection: PostgresConnection) async throws {
        let lock = try await connection.query(
            "SELECT pg_try_advisory_xact_lock(hashtext('muster.checks'), 1) AS is_free")
        guard try lock[0].decode("is_free", as: Bool.self) else { return }
        // Another coordinator may have looked until now.
        let due = try await connection.query(
            "SELECT c.looks::integer AS looks FROM checks c WHERE c.id = \(check) AND is_look_due(c)")
        guard let row = due.first else { return }
        let isFirst = try row.decode("looks", as: Int32.self) == 0
        let look = isFirst ? firstLook(for: check) : secondLook(for: check)
        let seen: Int64 = try await Self.query(look, within: Limits.checkRows, on: connection)[0].decode("count")
        if !isFirst {
            _ = try await connection.query("DELETE FROM check_findings WHERE check_id = \(check) AND outcome = 'seen'")
        }
        let counted = try await connection.query(
            """
            UPDATE checks
            SET looks = looks + 1, looked_at = statement_timestamp(), is_cut = is_cut OR \(seen > brokenRowsKept)
            WHERE id = \(check) AND finished_at IS NULL
            """)
        if counted.affected == 0 { throw CheckIsOver() }
    }

    /// The rows that contradict each other, as `subject` and `detail`: of the violations that begin alike, one stands for all.
    /// There is one more than is kept, if there are so many.
    private static let brokenRows: SQL =
        """
        SELECT s.subject, left(min(s.broken), 2000) || CASE WHEN count(*) > 1 THEN format(' (and %s more)', count(*) - 1) ELSE '' END AS detail
        FROM (
            SELECT b.broken, coalesce(substring(b.broken from '^[^:]+: [a-z]+ [^ ]+'), left(b.broken, 100)) AS subject
            FROM (\(SQL(unsafeRaw: InvariantQuery.state + InvariantQuery.strays))) AS b
        ) AS s GROUP BY s.subject ORDER BY s.subject LIMIT \(brokenRowsKept + 1)
        """

    /// Notes what the first look sees. Returns its number as `count`, as the second look does.
    private static func firstLook(for check: Int64) -> SQL {
        """
        WITH broken AS MATERIALIZED (
            \(brokenRows)
        ), noted AS (
            INSERT INTO check_findings (check_id, kind, subject, group_name, detail, outcome)
            SELECT \(check), 'rows', b.subject, CASE WHEN starts_with(b.subject, 'I6: group ') THEN substr(b.subject, 11) END, b.detail, 'seen'
            FROM broken b ON CONFLICT ON CONSTRAINT check_findings_once DO NOTHING
        )
        SELECT count(*) AS count FROM broken
        """
    }

    private static func secondLook(for check: Int64) -> SQL {
        """
        WITH broken AS MATERIALIZED (
            \(brokenRows)
        ), confirmed AS (
            UPDATE check_findings f
            SET detail = b.detail, outcome = CASE WHEN c.repair AND f.group_name IS NOT NULL THEN 'pending' ELSE 'found' END
            FROM broken b, checks c
            WHERE c.id = f.check_id AND f.check_id = \(check) AND f.kind = 'rows' AND f.outcome = 'seen' AND f.subject = b.subject
        )
        SELECT count(*) AS count FROM broken
        """
    }

    /// Repairs what was found, in its order. Lost files wait until all files of their sink were looked at, and are then fetched again
    /// group by group: a group completes once more, and not once for each of them (I7). What belongs to a group that another
    /// transaction keeps locked is left for the next round, and delays nothing of other groups (I19).
    private func repairFindings(of check: Int64) async throws {
        var busy: Set<String> = []
        var (after, left): (Int64, Int32) = (0, Self.repairsPerRound)
        while left > 0 {
            let page = try await query(
                """
                SELECT min(f.serial) AS serial, f.group_name
                FROM check_findings f JOIN checks c ON c.id = f.check_id AND c.finished_at IS NULL
                LEFT JOIN check_walks w ON w.check_id = f.check_id AND w.sink = f.sink
                WHERE f.check_id = \(check) AND f.outcome = 'pending' AND f.serial > \(after)
                    AND (f.group_name IS NULL OR f.group_name <> ALL (\(busy.sorted())))
                    AND (f.kind NOT IN ('fileMissing', 'fileChanged') OR w.phase IS DISTINCT FROM 'files')
                GROUP BY f.group_name, CASE WHEN f.kind NOT IN ('fileMissing', 'fileChanged') THEN f.serial END
                ORDER BY 1 LIMIT \(left)
                """)
            if page.isEmpty { return }
            for row in page {
                after = try row.decode("serial")
                let group = try row.decode("group_name", as: String?.self)
                if let group, busy.contains(group) { continue }
                let isSettled = try await repairFinding(after, of: check)
                if !isSettled, let group { busy.insert(group) } else { left -= 1 }
            }
        }
    }

    /// Repairs a finding; what the data of its group do not allow stays as it is. Returns `false` if another transaction is in
    /// the way.
    private func repairFinding(_ serial: Int64, of check: Int64) async throws -> Bool {
        do {
            let rows = try await write(
                "SELECT repair_finding(\(check), \(serial), \(policy.firstChunk)) AS is_done", waking: [])
            guard let isDone = try rows[0].decode("is_done", as: Bool?.self) else { return false }
            if isDone { wake([.work, .events]) }
        } catch let error as PostgresError where error.sqlState == .lockNotAvailable {
            return false
        } catch let error as PostgresError where error.isOfData {
            _ = try await write(
                """
                UPDATE check_findings SET outcome = 'found', detail = detail || '; other rows are in the way of a repair'
                WHERE check_id = \(check) AND serial = \(serial) AND outcome = 'pending'
                """, waking: [])
        }
        return true
    }
}
