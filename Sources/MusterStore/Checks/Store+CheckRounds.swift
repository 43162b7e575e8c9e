import MusterCore
import MusterPostgres

/// What coordinators do for a check: they look at the rows of the database, repair what was found, and end the check.
extension Store {
    /// The most findings that one round repairs.
    private static let repairsPerRound: Int32 = 200

    /// Does what is due of the check that is under way, if there is one. Several coordinators may call it at once.
    public func advanceCheck() async throws {
        let rows = try await query(
            """
            SELECT id, repair, looks < 2 AND (looked_at IS NULL OR looked_at < statement_timestamp() - interval '5 s') AS is_due
            FROM checks WHERE finished_at IS NULL
            """)
        guard let row = rows.first else { return }
        let check: Int64 = try row.decode("id")
        let (isDue, repairs): (Bool, Bool) = (try row.decode("is_due"), try row.decode("repair"))
        if isDue { try await lookAtRows(of: check) }
        if repairs { try await repairFindings(of: check) }
        _ = try await write("SELECT end_check()::text", waking: [])
    }

    /// Looks at the rows of the database. What the first look has seen counts if the second one, some seconds later, sees it
    /// too: the sweep takes a moment to take back the leases of a session that has just ended.
    private func lookAtRows(of check: Int64) async throws {
        do {
            try await transaction(waking: []) { connection in
                // Another coordinator may have the check: each look takes its time.
                let due = try await connection.query(
                    """
                    SELECT looks::integer AS looks FROM checks WHERE id = \(check) AND finished_at IS NULL AND looks < 2
                    FOR NO KEY UPDATE SKIP LOCKED
                    """)
                guard let row = due.first else { return }
                let isFirst = try row.decode("looks", as: Int32.self) == 0
                let look = isFirst ? Self.firstLook(for: check) : Self.secondLook(for: check)
                _ = try await Self.query(look, within: Limits.checkRows, on: connection)
                if !isFirst {
                    _ = try await connection.query(
                        "DELETE FROM check_findings WHERE check_id = \(check) AND outcome = 'seen'")
                }
                _ = try await connection.query(
                    "UPDATE checks SET looks = looks + 1, looked_at = statement_timestamp() WHERE id = \(check)")
            }
        } catch let error as PostgresError where error.sqlState == .queryCanceled {
            _ = try await write(
                """
                UPDATE checks SET looks = 2, failure = 'it took too long to read the rows of the database'
                WHERE id = \(check) AND finished_at IS NULL
                """, waking: [])
        }
    }

    /// The rows that contradict each other, as `subject` and `detail`: of the violations that begin alike, one stands for all.
    private static let brokenRows: SQL =
        """
        SELECT s.subject, left(min(s.broken), 2000) || CASE WHEN count(*) > 1 THEN format(' (and %s more)', count(*) - 1) ELSE '' END AS detail
        FROM (
            SELECT b.broken, coalesce(substring(b.broken from '^[^:]+: [a-z]+ [^ ]+'), left(b.broken, 100)) AS subject
            FROM (\(SQL(unsafeRaw: InvariantQuery.state + InvariantQuery.strays))) AS b
        ) AS s GROUP BY s.subject ORDER BY s.subject LIMIT 1000
        """

    private static func firstLook(for check: Int64) -> SQL {
        """
        INSERT INTO check_findings (check_id, kind, subject, group_name, detail, outcome)
        SELECT \(check), 'rows', b.subject, CASE WHEN starts_with(b.subject, 'I6: group ') THEN substr(b.subject, 11) END, b.detail, 'seen'
        FROM (\(brokenRows)) AS b ON CONFLICT ON CONSTRAINT check_findings_once DO NOTHING
        """
    }

    private static func secondLook(for check: Int64) -> SQL {
        """
        UPDATE check_findings f
        SET detail = b.detail, outcome = CASE WHEN c.repair AND f.group_name IS NOT NULL THEN 'pending' ELSE 'found' END
        FROM (\(brokenRows)) AS b, checks c
        WHERE c.id = f.check_id AND f.check_id = \(check) AND f.kind = 'rows' AND f.outcome = 'seen' AND f.subject = b.subject
        """
    }

    /// Repairs what was found, one by one. A group that another transaction keeps locked is left for the next round. What the
    /// data of its group do not allow stays as it is.
    private func repairFindings(of check: Int64) async throws {
        let pending = try await query(
            """
            SELECT serial FROM check_findings WHERE check_id = \(check) AND outcome = 'pending'
            ORDER BY serial LIMIT \(Self.repairsPerRound)
            """)
        for row in pending {
            let serial: Int64 = try row.decode("serial")
            do {
                let rows = try await write(
                    "SELECT repair_finding(\(check), \(serial), \(policy.firstChunk)) AS is_done", waking: [])
                if try rows[0].decode("is_done", as: Bool?.self) == true { wake([.work, .events]) }
            } catch let error as PostgresError where error.sqlState == .lockNotAvailable {
                continue
            } catch let error as PostgresError where error.constraint != nil {
                _ = try await write(
                    """
                    UPDATE check_findings SET outcome = 'found', detail = detail || '; other rows are in the way of a repair'
                    WHERE check_id = \(check) AND serial = \(serial) AND outcome = 'pending'
                    """, waking: [])
            }
        }
    }
}
