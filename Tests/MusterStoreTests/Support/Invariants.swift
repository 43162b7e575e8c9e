import MusterPostgres
import MusterStore
import MusterTestSupport

/// All that holds at every commit (`docs/invariants.md`) and what the test's policy allows, as one query: each row is a violation.
enum Invariants {
    /// Returns the violations in words; an empty list when all invariants hold.
    static func check(_ fixture: StoreFixture) async throws -> [String] {
        let policy = fixture.policy
        // `check_rows()` is the check that runs when a private database starts: it must hold for every consistent database.
        try await fixture.checkRows()
        return try await fixture.values(
            SQL(unsafeRaw: InvariantQuery.text) + """
                UNION ALL SELECT 'I5: origin ' || l.origin_id || ' has ' || count(DISTINCT (l.session_id, l.lane)) || ' lanes'
                FROM leases l JOIN origins o ON o.id = l.origin_id GROUP BY l.origin_id, o.max_connections
                HAVING count(DISTINCT (l.session_id, l.lane)) > coalesce(o.max_connections, \(policy.connectionsPerOrigin))
                UNION ALL SELECT 'I5: leases to origin ' || o.key || ' were put into ' || count(DISTINCT (l.session_id, l.lane))
                    || ' lanes after it refused at ' || o.learned
                -- A halving takes nothing back: what counts is what was granted since, and what was allowed then.
                FROM leases l JOIN origins o ON o.id = l.origin_id AND l.granted_at > o.learned_at
                GROUP BY o.id
                HAVING count(DISTINCT (l.session_id, l.lane))
                    > o.learned + power(2, greatest(0, floor(least(100, extract(epoch FROM max(l.granted_at) - o.learned_at)) / 5) - 1)) - 1
                UNION ALL SELECT 'I5: lane ' || lane || ' is of several sessions or origins' FROM leases WHERE lane > 0
                GROUP BY lane HAVING count(DISTINCT (session_id, origin_id)) > 1
                UNION ALL SELECT 'I5: session ' || session_id || ' has ' || count(*) || ' leases'
                FROM leases GROUP BY session_id HAVING count(*) > \(policy.leasesPerSession)
                """)
    }
}
