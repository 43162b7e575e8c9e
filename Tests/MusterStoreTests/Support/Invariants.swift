import MusterPostgres
import MusterStore
import MusterTestSupport

/// What holds at every commit (`docs/invariants.md`), and what the policy of a test allows, as one query: each row is something that is broken.
enum Invariants {
    /// Returns what is broken, in words; nothing when all is well.
    static func check(_ fixture: StoreFixture) async throws -> [String] {
        let policy = fixture.policy
        return try await fixture.values(
            SQL(unsafeRaw: InvariantQuery.text) + """
                UNION ALL SELECT 'I5: origin ' || l.origin_id || ' has ' || count(*) || ' leases'
                FROM leases l JOIN origins o ON o.id = l.origin_id GROUP BY l.origin_id, o.max_connections
                HAVING count(*) > coalesce(o.max_connections, \(policy.leasesPerOrigin))
                UNION ALL SELECT 'I5: origin ' || o.key || ' was granted lease ' || l.n || ' after it refused at ' || o.learned
                FROM (
                    SELECT origin_id, granted_at, count(*) OVER (PARTITION BY origin_id ORDER BY granted_at) AS n FROM leases
                ) AS l JOIN origins o ON o.id = l.origin_id
                -- A halving takes nothing back: what counts is how many there were at the grant, and what was allowed then.
                WHERE l.granted_at > o.learned_at
                    AND l.n > o.learned + floor(extract(epoch FROM l.granted_at - o.learned_at) / 60)
                UNION ALL SELECT 'I5: session ' || session_id || ' has ' || count(*) || ' leases'
                FROM leases GROUP BY session_id HAVING count(*) > \(policy.leasesPerSession)
                """)
    }
}
