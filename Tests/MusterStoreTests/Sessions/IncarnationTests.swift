import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// Databases that have lost committed data, after an asynchronous failover or a restore.
@Suite struct IncarnationTests {
    @Test func anUnchangedDatabaseGoesOn() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.enterFence()
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await fixture.enterFence()
            #expect(try await worker.sync(held: [lease.name])?.lost.isEmpty == true)
            #expect(lease.name.epoch.rawValue < 1_000)
        }
    }

    /// A page that a disk has lost may read as empty, without an error of PostgreSQL.
    @Test func aDatabaseWithoutItsEventLogRowIsDamaged() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.enterFence()
            try await fixture.deleteRows(of: "event_log")
            await #expect {
                try await fixture.enterFence()
            } throws: { error in
                (error as? PostgresError)?.isDamage == true
            }
        }
    }

    /// All databases of these tests are copies of a template that was never used.
    @Test func copiesOfAnUnusedDatabaseAreDistinctInstallations() async throws {
        let identity = Observed<[[String]]>([])
        for _ in 0..<2 {
            try await StoreFixture.run { fixture in
                #expect(try await fixture.count(of: "installation") == 0)
                try await fixture.enterFence()
                try await fixture.enterFence()
                let id = try await fixture.store.installation()
                let incarnation = try await fixture.value("SELECT incarnation FROM installation", as: String.self)
                // File copies also share the database's OID within its cluster; the suffix tells them apart.
                #expect(incarnation.hasSuffix(".\(id)"))
                identity.update { $0.append([id, incarnation]) }
            }
        }
        #expect(Set(identity.value.map(\.[0])).count == 2 && Set(identity.value.map(\.[1])).count == 2)
    }

    @Test func reportsFromALostPastHaveNoEffect() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.enterFence()
            try await fixture.makeGroup("g", Wanted.many(2, size: 90), isSealed: true)
            var before = try await fixture.makeWorker("before")
            let stale = try await before.claim(2)
            try await fixture.restoreFiles()
            try await fixture.enterFence()
            #expect(try await before.sync(held: stale.map(\.name)) == nil, "the worker has to open a new session")
            // Reports under the old numbers have no effect, whatever has these numbers in the backup.
            try await before.finish(stale[0], size: 90)
            #expect(try await fixture.store.group("g").tasks[.succeeded] == 0)
            #expect(try await fixture.store.sweepSessions().leases == 2)
            try await fixture.check()
            var after = try await fixture.makeWorker("after")
            #expect(after.session.rawValue > 1 << 30)
            let leases = try await after.claim(2)
            #expect(leases.count == 2 && leases.allSatisfy { $0.name.epoch.rawValue > 1 << 30 && $0.isFenced })
            #expect(leases.allSatisfy { $0.revoke.contains(before.session) })
            try await fixture.makeGroup("new", [Wanted("u")])
            let newest = try #require(try await fixture.tasks().last)
            #expect(newest.id > 1 << 30)
            try await after.finishEverything(size: 90)
            #expect(try await fixture.store.group("g").state == .succeeded)
            try await fixture.check()
        }
    }

    /// One backup is restored twice: what was done after the first restore is lost as well.
    @Test func numbersOfALostIncarnationDoNotRecurInTheNext() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.enterFence()
            try await fixture.makeGroup("g", [Wanted("t")])
            var numbers: [Int64] = []
            for name in ["u", "v"] {
                try await fixture.run("SELECT setval('task_ids', 1)")
                try await fixture.restoreFiles()
                try await fixture.enterFence()
                try await fixture.makeGroup(name, [Wanted(name)])
                numbers.append(try await fixture.value("SELECT last_value FROM task_ids"))
            }
            #expect(numbers[0] > 1 << 30 && numbers[1] > numbers[0])
            // Every reader of JSON has them exactly.
            #expect(numbers[1] < 1 << 53)
            try await fixture.check()
        }
    }

    /// An event of a generation missing in the backup may have been delivered: its replacement is another fact (I9).
    @Test func eventsOfAnIncarnationHaveIdsOfTheirOwn() async throws {
        try await StoreFixture.run { fixture in
            func ids() async throws -> Set<String> { Set(try await fixture.events().map(\.id)) }
            try await fixture.enterFence()
            try await fixture.makeGroup("g", [Wanted("t", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            try await worker.finishEverything(size: 90)
            let before = try await ids()
            #expect(before.contains("grp-1-1-succeeded"))
            var marks: Set<Substring> = []
            for name in ["u", "v"] {
                try await fixture.restoreFiles()
                try await fixture.enterFence()
                try await fixture.makeGroup(name, [Wanted(name, size: 90)], isSealed: true)
                worker = try await fixture.makeWorker(name)
                try await worker.finishEverything(size: 90)
                let fresh = try await ids().filter { $0.hasPrefix("grp-") && $0 != "grp-1-1-succeeded" }
                marks.formUnion(fresh.map { $0.split(separator: "-").last ?? "" })
            }
            #expect(marks.count == 2 && marks.allSatisfy { $0.count == 8 }, "\(marks)")
            #expect(try await ids().isSuperset(of: before))
            try await fixture.check()
        }
    }
}
