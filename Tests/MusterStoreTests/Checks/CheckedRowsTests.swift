import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// How a check looks at the rows of the database while they change, and how it ends (adr/0048).
@Suite struct CheckedRowsTests {
    @Test func aLookThatFailsByItselfIsNotRepeated() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(1))
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: [])
            try await fixture.miscount("g")
            try await fixture.store.advanceCheck()
            #expect(try await fixture.count(of: "check_findings") == 1)
            try await fixture.passLook()
            // The server refuses the second look.
            try await fixture.run("ALTER TABLE group_prerequisites RENAME TO lost")
            try await fixture.store.advanceCheck()
            let record = try await fixture.store.check(check)
            #expect(record.failure?.contains("42P01") == true && record.areRowsDone)
            #expect(try await fixture.count(of: "check_findings") == 0, "one look proves nothing")
            try await fixture.run("ALTER TABLE lost RENAME TO group_prerequisites")
            try await fixture.passLook()
            try await fixture.store.advanceCheck()
            #expect(try await fixture.store.check(check).failure == record.failure)
            try await fixture.walkToTheEnd()
            try await fixture.store.advanceCheck()
            #expect(try await fixture.store.check(check).finishedAt != nil)
        }
    }

    @Test(arguments: [1_000, 1_001] as [Int32])
    func moreContradictionsThanAreKeptAreTold(count: Int32) async throws {
        try await StoreFixture.run { fixture in
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: [])
            try await fixture.run(
                """
                INSERT INTO groups (name, sink, succeeded) SELECT 'g' || n, 'sink', 1 FROM generate_series(1, \(count)) AS n
                """)
            try await fixture.lookTwice()
            let record = try await fixture.store.check(check)
            #expect(record.found == Int64(count) && record.isCut == (count > 1_000))
        }
    }

    @Test func aCheckIsStoppedWhileItsRowsAreLookedAt() async throws {
        try await StoreFixture.run { fixture in
            let store = fixture.store
            try await fixture.makeGroup("g", Wanted.many(1))
            try await fixture.miscount("g")
            let check = try await store.beginCheck(isDeep: false, repairs: true, sinks: [])
            try await store.advanceCheck()
            try await fixture.passLook()
            let look = try await fixture.pool.withTransaction { connection in
                // The second look waits for this table.
                _ = try await connection.query("LOCK TABLE done_chunks IN ACCESS EXCLUSIVE MODE")
                let look = Task { try await store.advanceCheck() }
                try await eventually("the look waits") { try await fixture.lockWaiters() == 1 }
                // Another coordinator does not look at the same time, and does not wait either.
                try await store.advanceCheck()
                try await store.stopCheck(check)
                return look
            }
            try await look.value
            let record = try await store.check(check)
            #expect(record.isStopped && !record.areRowsDone && record.found == 0 && record.repaired == 0)
            #expect(try await fixture.findings(of: check).isEmpty, "a look that was stopped does not count")
        }
    }

    @Test func aReportAfterTheEndOfItsCheckChangesNothing() async throws {
        try await StoreFixture.run { fixture in
            let worker = try await fixture.makeWorker()
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: ["sink"])
            let names = try #require(try await worker.page())
            let report = try await fixture.pool.withTransaction { connection in
                // The end of the check is under way: the report has found it running, and waits.
                _ = try await connection.query(
                    "UPDATE checks SET finished_at = statement_timestamp(), stopped = true WHERE id = \(check)")
                let report = Task { try await worker.saw(names) { $0.installations = ["another"] } }
                try await eventually("the report waits") { try await fixture.lockWaiters() == 1 }
                return report
            }
            #expect(try await report.value == nil)
            #expect(try await fixture.count(of: "check_findings") == 0)
        }
    }
}
