import MusterCore
import MusterPostgres
import MusterStore

/// Checks of the database against the sinks (adr/0048).
extension StoreFixture {
    /// Lets the pause between two looks at the rows pass.
    func passLook() async throws { try await run("UPDATE checks SET looked_at = looked_at - interval '10 s'") }

    /// Counts a task of a group that there is not.
    func miscount(_ group: String) async throws {
        try await run("UPDATE groups SET succeeded = succeeded + 1 WHERE name = \(group)")
    }

    /// Lets coordinators do what is due of the check, until both looks at the rows are over.
    func lookTwice() async throws {
        try await store.advanceCheck()
        try await passLook()
        try await store.advanceCheck()
    }

    /// What a check has found, with what is done about it.
    func findings(of check: Int64) async throws -> [FindingRecord] {
        try await store.findings(of: check, after: 0, limit: 100)
    }

    /// Adds findings of a group whose repair counts the group anew.
    func addPendingFindings(_ count: Int32, of group: String, to check: Int64) async throws {
        try await run(
            """
            INSERT INTO check_findings (check_id, kind, subject, group_name, detail, outcome)
            SELECT \(check), 'rows', \(group)::text || n, \(group), '', 'pending' FROM generate_series(1, \(count)) AS n
            """)
    }

    /// Lets a worker say of everything in the sink that is checked that nothing is wrong.
    func walkToTheEnd() async throws {
        let worker = try await makeWorker("walker")
        var page = try await worker.page()
        while let order = page { page = try await worker.saw(order) }
    }

    /// The revoked sessions of a sink.
    func revocations(of sink: String) async throws -> [Int64] {
        try await values("SELECT session_id FROM revocations WHERE sink = \(sink) ORDER BY 1")
    }
}

extension TestWorker {
    /// Asks for a page of the check that is under way, without a report.
    func page() async throws -> CheckOrder? { try await store.checkStep(of: session, report: nil) }

    /// Reports on a page, and returns the next one.
    @discardableResult
    func saw(_ page: CheckOrder, _ describe: (inout CheckReport) -> Void = { _ in }) async throws -> CheckOrder? {
        var report = CheckReport(on: page)
        report.looked = Int64(page.files?.count ?? page.parts?.count ?? 0)
        describe(&report)
        return try await store.checkStep(of: session, report: report)
    }
}
