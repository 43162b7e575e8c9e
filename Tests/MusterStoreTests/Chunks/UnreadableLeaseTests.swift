import MusterCore
import MusterPostgres
import Testing

@testable import MusterStore

/// A lease whose row can't be read fails without affecting others.
@Suite("Leases that can't be read") struct UnreadableLeaseTests {
    /// Which stored value is broken; the task's failure names it.
    enum Breakage: String, CaseIterable, Sendable {
        case crc, digests
    }

    @Test(arguments: Breakage.allCases) func leaseThatCannotBeReadFailsAlone(_ breakage: Breakage) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("bad"), Wanted("good")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            let bad = try #require(leases.first { $0.key == "bad" })
            switch breakage {
            case .crc: try await fixture.run("UPDATE leases SET crc = -1 WHERE chunk_id = \(bad.name.chunk)")
            case .digests:
                try await fixture.run("UPDATE tasks SET stated_digests = '{\"md5\": 17}' WHERE key = 'bad'")
            }
            let rows = try await fixture.pool.query(
                "SELECT * FROM granted_leases(\(leases.map(\.name.chunk.rawValue)), '{}')")
            #expect(try await fixture.store.grants(rows).map(\.key) == ["good"])
            let task = try await fixture.store.task("bad", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .unreadable)
            let detail = try #require(task.failure?.detail)
            switch breakage {
            case .crc: #expect(detail == "PostgreSQL column \"crc\" cannot be read as UInt32: outOfRange")
            case .digests:
                #expect(
                    detail
                        == "tasks.stated_digests of task \(bad.task) can't be read as Dictionary<String, String>: /md5 has the wrong type"
                )
            }
            // After a repair the task can go on.
            try await fixture.set("tasks", "stated_digests", to: PostgresJSON?.none)
            try await fixture.set("ready_chunks", "crc", to: 0)
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            for lease in leases where lease.key == "good" { try await worker.finish(lease, size: 90) }
            try await worker.finishEverything()
            #expect(try await fixture.store.group("g").tasks[.succeeded] == 2)
            try await fixture.check()
        }
    }

    @Test func finishedChunkWithAnInvalidRangeIsRefused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 250)
            try await worker.done(first)
            for lease in try await worker.claim(8) { try await worker.done(lease) }
            let finalize = try #require(try await worker.claim().first)
            #expect(finalize.kind == .finalize && finalize.chunks.map(\.range.end) == [100, 200, 250])
            try await fixture.run("ALTER TABLE done_chunks DISABLE TRIGGER ALL")
            try await fixture.run("UPDATE done_chunks SET last = -1 WHERE first = 100")
            let rows = try await fixture.pool.query(
                "SELECT * FROM granted_leases(\([finalize.name.chunk.rawValue]), '{}')")
            let error = #expect(throws: StoredValueError.self) {
                try rows.map { try GrantedLease($0, policy: fixture.policy) }
            }
            #expect(error?.column == "done_chunks.last" && error?.row == "task \(finalize.task)")
        }
    }
}
