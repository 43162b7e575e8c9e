import MusterCore
import MusterPostgres
import MusterStore
import Synchronization
import Testing

/// Groups with damaged data of their own: no other group, worker or session suffers from that (I19).
@Suite struct FlawedGroupTests {
    /// Two groups of one file each, both leased to a worker. The second group's counts don't add up.
    private static func leased(_ fixture: StoreFixture) async throws -> (worker: TestWorker, leases: [GrantedLease]) {
        try await fixture.makeGroup("good", [Wanted("a")], isSealed: true)
        try await fixture.makeGroup("bad", [Wanted("b")], isSealed: true)
        var worker = try await fixture.makeWorker()
        let leases = try await worker.claim(2)
        #expect(leases.count == 2)
        // Any further charge overflows.
        try await fixture.run("UPDATE groups SET served = 9223372036854775807 WHERE name = 'bad'")
        try await fixture.run("UPDATE leases SET charged = 0")
        return (worker, leases)
    }

    private static func leasedGroups(_ fixture: StoreFixture) async throws -> [String] {
        try await fixture.values("SELECT g.name FROM leases l JOIN groups g ON g.id = l.group_id ORDER BY 1")
    }

    private static func mend(_ fixture: StoreFixture) async throws {
        try await fixture.run("UPDATE groups SET served = 0 WHERE name = 'bad'")
    }

    @Test func sweepPutsBackLeasesOfOtherGroupsAndNamesTheStuckGroup() async throws {
        try await StoreFixture.run { fixture in
            let (worker, _) = try await Self.leased(fixture)
            let swept = try await fixture.expire(worker.session)
            #expect(swept.sessions == 1 && swept.leases == 1 && swept.stuck == ["bad"])
            #expect(try await Self.leasedGroups(fixture) == ["bad"])
            #expect(try await fixture.store.group("good").tasks[.queued] == 1)
            // After the repair the group goes on.
            try await Self.mend(fixture)
            let again = try await fixture.store.sweepSessions()
            #expect(again.leases == 1 && again.stuck.isEmpty)
            try await fixture.check()
        }
    }

    /// Collects the names of stuck groups that the store reports.
    private final class Stuck: Sendable {
        private let names = Mutex<[String]>([])

        var told: [String] { names.withLock { $0 } }

        var note: Store.StuckGroups { { names in self.names.withLock { $0 = names } } }
    }

    @Test func tasksOfOtherGroupsFailInTime() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.leased(fixture)
            // As many tasks of the flawed group as one transaction takes, and these come first.
            try await fixture.run(
                """
                UPDATE tasks t SET time_limit = '1 h', deadline_at = statement_timestamp()
                    - CASE WHEN g.name = 'bad' THEN interval '1 h' ELSE interval '0' END FROM groups g WHERE g.id = t.group_id
                """)
            let stuck = Stuck()
            #expect(try await fixture.store.failOverdue(limit: 1, onStuck: stuck.note) == 1)
            #expect(stuck.told == ["bad"])
            #expect(try await fixture.store.group("good").state == .failed)
            try await Self.mend(fixture)
            #expect(try await fixture.store.failOverdue(limit: 1, onStuck: stuck.note) == 1)
            #expect(stuck.told.isEmpty)
            try await fixture.check()
        }
    }

    @Test func deadlinesOfOtherGroupsAreApplied() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.leased(fixture)
            try await fixture.run(
                "UPDATE groups SET time_limit = '1 h', deadline_action = 'fail', deadline_at = '-infinity'")
            let stuck = Stuck()
            let expired = try await fixture.store.expireGroups(onStuck: stuck.note)
            #expect(expired.groups == 1 && expired.failedTasks == 1 && stuck.told == ["bad"])
            #expect(try await fixture.store.group("good").state == .failed)
        }
    }

    @Test func otherGroupsOfAChainBegin() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("bad", isSealed: true)
            try await fixture.makeGroup("good", isSealed: true)
            // Neither group waits for anything any more; the flawed one's counts overflow in its event.
            try await fixture.run("UPDATE groups SET state = 'sealed', held = true, finished_at = NULL")
            try await fixture.run("UPDATE groups SET succeeded = 9223372036854775807, failed = 1 WHERE name = 'bad'")
            let stuck = Stuck()
            #expect(try await fixture.store.releaseGroups(onStuck: stuck.note) == 1)
            #expect(stuck.told == ["bad"])
            #expect(try await fixture.store.group("good").state == .succeeded)
        }
    }

    @Test func wishesForOtherGroupsAreApplied() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.leased(fixture)
            try await fixture.run(
                """
                INSERT INTO wishes (group_id, verb, wished_at)
                SELECT id, 'cancel', CASE WHEN name = 'bad' THEN '-infinity'::timestamptz ELSE statement_timestamp() END FROM groups
                """)
            let stuck = Stuck()
            #expect(try await fixture.store.sweepWishes(onStuck: stuck.note) == 1)
            #expect(stuck.told == ["bad"])
            #expect(try await fixture.store.group("good").state == .cancelled)
        }
    }

    @Test func chunkOfASinkThatTheWorkerLacksIsNotLeasedToIt() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2), isSealed: true)
            var worker = try await fixture.makeWorker()
            let finalized = try #require(try await worker.claim().first)
            try await worker.learn(finalized, size: 90)
            try await worker.done(finalized)
            try await fixture.run("UPDATE ready_chunks SET sink = 'elsewhere'")
            #expect(try await worker.claim(8).isEmpty)
        }
    }

    @Test func aSyncThatRepairsOtherGroupsIsAnswered() async throws {
        try await StoreFixture.run { fixture in
            var (worker, _) = try await Self.leased(fixture)
            let renewed = try #require(try await worker.sync(settled: 1, held: []))
            #expect(renewed.isNewest && renewed.repaired == 1)
            #expect(try await Self.leasedGroups(fixture) == ["bad"])
            try await Self.mend(fixture)
            #expect(try await worker.sync(settled: 2, held: [])?.repaired == 1)
            try await fixture.check()
        }
    }

    @Test func aClosedSessionEndsDespiteAStuckGroup() async throws {
        try await StoreFixture.run { fixture in
            let (worker, _) = try await Self.leased(fixture)
            try await fixture.store.closeSession(worker.session)
            #expect(try await fixture.value("SELECT count(*) FROM sessions") == Int64(0))
            #expect(try await fixture.store.sweepSessions().stuck == ["bad"])
            #expect(try await Self.leasedGroups(fixture) == ["bad"])
        }
    }

    @Test func stalledLeasesOfOtherGroupsComeBack() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.leased(fixture)
            try await fixture.run("UPDATE leases SET progress_at = '-infinity'")
            let swept = try await fixture.store.sweepStalled(stall: .seconds(60))
            #expect(swept.leases == 1 && swept.stuck == ["bad"])
            #expect(try await Self.leasedGroups(fixture) == ["bad"])
        }
    }

    @Test(arguments: [
        ("timetable", #"[{"from": "noon", "to": "13:00", "bytesPerSecond": 1}]"#),
        ("timetable", #"[{"from": "00:00", "to": "00:00", "bytesPerSecond": "much"}]"#),
        ("timetable", #"[{"from": "00:00", "to": "00:01", "timeZone": "Nowhere/Atlantis", "bytesPerSecond": 1}]"#),
        ("window_zone", "Nowhere/Atlantis"),
    ])
    func aGroupWithUnreadableHoursWaitsAndOthersGoOn(_ column: String, _ text: String) async throws {
        try await StoreFixture.run { fixture in
            // The flawed group would be served first.
            try await fixture.makeGroup("bad", [Wanted("b")], priority: 1, isSealed: true)
            try await fixture.makeGroup("good", [Wanted("a")], isSealed: true)
            if column == "timetable" {
                try await fixture.run("UPDATE groups SET timetable = \(text)::text::jsonb WHERE name = 'bad'")
            } else {
                try await fixture.run(
                    "UPDATE groups SET window_from = '00:00', window_to = '00:01', window_zone = \(text) WHERE name = 'bad'"
                )
            }
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(8).map(\.path) == ["a"])
            let flawed = try await fixture.store.flawedHours()
            #expect(flawed.map { $0.group } == ["bad"] && flawed.allSatisfy { !$0.flaw.isEmpty })
            _ = try await fixture.store.sweepGroups()
            _ = try await worker.sync()
            try await fixture.run(
                "UPDATE groups SET timetable = NULL, window_from = NULL, window_to = NULL, window_zone = NULL")
            #expect(try await worker.claim(8).map(\.path) == ["b"])
            #expect(try await fixture.store.flawedHours().isEmpty)
        }
    }
}
