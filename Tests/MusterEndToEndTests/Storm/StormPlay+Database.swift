import MusterTestSupport

/// Faults of the database.
extension StormPlay {
    func crashDatabase() async throws -> End {
        let cluster = try await database.cluster()
        await cluster.stop(.immediate)
        return { try await cluster.start() }
    }

    func losePrimary() async throws -> End {
        _ = try await database.cluster()
        try await database.killPrimary()
        return { try await database.failOver() }
    }

    /// Sends a signal to some processes of the server, several times in a row. A commit that waits for the standby is spared: its cancellation
    /// would make it visible before the standby has it (`adr/0047`).
    func signalBackends(_ function: String, _ condition: String, times: Int) async throws -> End {
        let sql = """
            SELECT \(function)(pid) FROM (
                SELECT pid FROM pg_stat_activity
                WHERE datname = current_database() AND application_name LIKE 'muster%'
                    AND wait_event IS DISTINCT FROM 'SyncRep' AND \(condition)
                ORDER BY random() LIMIT 4
            ) AS victims
            """
        for _ in 0..<times { try await database.execute(sql) }
        return {}
    }

    /// Takes locks against the order that all others keep to. Either side may be the one that gets 40P01.
    func deadlock() async throws -> End {
        let sql = """
            BEGIN;
            SET LOCAL deadlock_timeout = '300ms';
            SELECT count(*) FROM (SELECT id FROM groups ORDER BY id DESC FOR UPDATE) AS locked;
            SELECT pg_sleep(0.1);
            SELECT count(*) FROM (SELECT id FROM origins ORDER BY id DESC FOR UPDATE) AS locked;
            SELECT count(*) FROM (SELECT id FROM sessions ORDER BY id DESC FOR UPDATE) AS locked;
            ROLLBACK;
            """
        for _ in 0..<4 {
            do {
                try await database.execute(sql)
            } catch let error as TestPostgres.StatementFailed where error.output.contains("deadlock detected") {
                continue
            }
        }
        return {}
    }

    func refuseWrites() async throws -> End {
        let begin = "SET default_transaction_read_only = off;"
        let load = "SELECT pg_reload_conf();"
        try await database.execute("\(begin) ALTER SYSTEM SET default_transaction_read_only = on; \(load)")
        return {
            try await database.execute("\(begin) ALTER SYSTEM RESET default_transaction_read_only; \(load)")
        }
    }

    func holdSnapshot(_ random: inout SeededGenerator) async throws -> End {
        try await database.execute(
            """
            BEGIN ISOLATION LEVEL REPEATABLE READ;
            SELECT count(*) FROM tasks;
            SELECT pg_sleep(\(Int.random(in: 2...6, using: &random)));
            COMMIT;
            """)
        return {}
    }

    func notify() async throws -> End {
        try await database.execute(
            """
            SELECT count(pg_notify(channel, n::text))
            FROM generate_series(1, 20000) AS n CROSS JOIN unnest(ARRAY['muster_work', 'muster_events']) AS channel
            """)
        return {}
    }
}
