import MusterCore
import MusterStore
import MusterTestSupport
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
        try await fixture.set("groups", "served", to: Int64.max, of: "bad")
        try await fixture.set("leases", "charged", to: 0)
        return (worker, leases)
    }

    @Test func sweepPutsBackLeasesOfOtherGroupsAndNamesTheStuckGroup() async throws {
        try await StoreFixture.run { fixture in
            let (worker, _) = try await Self.leased(fixture)
            let swept = try await fixture.expire(worker.session)
            #expect(swept.sessions == 1 && swept.leases == 1 && swept.stuck == ["bad"])
            #expect(try await fixture.leasedGroups() == ["bad"])
            #expect(try await fixture.store.group("good").tasks[.queued] == 1)
            // After the repair the group goes on.
            try await fixture.set("groups", "served", to: 0, of: "bad")
            let again = try await fixture.store.sweepSessions()
            #expect(again.leases == 1 && again.stuck.isEmpty)
            try await fixture.check()
        }
    }

    @Test func tasksOfOtherGroupsFailInTime() async throws {
        try await StoreFixture.run { fixture in
            let flawed = try #require(try await Self.leased(fixture).leases.first { $0.group == "bad" })
            // As many tasks of the flawed group as one transaction takes, and these come first.
            try await fixture.limitTime(to: .seconds(3_600), left: .zero)
            try await fixture.age(.deadline, by: .seconds(3_600), of: flawed.task.rawValue)
            let stuck = Observed<[String]>([])
            #expect(try await fixture.store.failOverdue(limit: 1, onStuck: stuck.note) == 1)
            #expect(stuck.value == ["bad"])
            #expect(try await fixture.store.group("good").state == .failed)
            try await fixture.set("groups", "served", to: 0, of: "bad")
            #expect(try await fixture.store.failOverdue(limit: 1, onStuck: stuck.note) == 1)
            #expect(stuck.value.isEmpty)
            try await fixture.check()
        }
    }

    @Test func deadlinesOfOtherGroupsAreApplied() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.leased(fixture)
            for group in ["bad", "good"] { try await fixture.passDeadline(of: group) }
            let stuck = Observed<[String]>([])
            let expired = try await fixture.store.expireGroups(onStuck: stuck.note)
            #expect(expired.groups == 1 && expired.failedTasks == 1 && stuck.value == ["bad"])
            #expect(try await fixture.store.group("good").state == .failed)
        }
    }

    @Test func otherGroupsOfAChainBegin() async throws {
        try await StoreFixture.run { fixture in
            for group in ["bad", "good"] { try await fixture.makeGroup(group) }
            // Neither group waits for anything any more; the flawed one's counts overflow in its event.
            try await fixture.set("groups", "state", to: "sealed")
            try await fixture.set("groups", "held", to: true)
            try await fixture.set("groups", "succeeded", to: Int64.max, of: "bad")
            try await fixture.set("groups", "failed", to: 1, of: "bad")
            let stuck = Observed<[String]>([])
            #expect(try await fixture.store.releaseGroups(onStuck: stuck.note) == 1)
            #expect(stuck.value == ["bad"])
            #expect(try await fixture.store.group("good").state == .succeeded)
        }
    }

    @Test func wishesForOtherGroupsAreApplied() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.leased(fixture)
            for group in ["bad", "good"] { try await fixture.wish(.cancel, for: group) }
            let stuck = Observed<[String]>([])
            #expect(try await fixture.store.sweepWishes(onStuck: stuck.note) == 1)
            #expect(stuck.value == ["bad"])
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
            try await fixture.set("ready_chunks", "sink", to: "elsewhere")
            #expect(try await worker.claim(8).isEmpty)
        }
    }

    @Test func aSyncThatRepairsOtherGroupsIsAnswered() async throws {
        try await StoreFixture.run { fixture in
            var (worker, _) = try await Self.leased(fixture)
            let renewed = try #require(try await worker.sync(settled: 1, held: []))
            #expect(renewed.isNewest && renewed.repaired == 1)
            #expect(try await fixture.leasedGroups() == ["bad"])
            try await fixture.set("groups", "served", to: 0, of: "bad")
            #expect(try await worker.sync(settled: 2, held: [])?.repaired == 1)
            try await fixture.check()
        }
    }

    @Test func aClosedSessionEndsDespiteAStuckGroup() async throws {
        try await StoreFixture.run { fixture in
            let (worker, _) = try await Self.leased(fixture)
            try await fixture.store.closeSession(worker.session)
            #expect(try await fixture.count(of: "sessions") == 0)
            #expect(try await fixture.store.sweepSessions().stuck == ["bad"])
            #expect(try await fixture.leasedGroups() == ["bad"])
        }
    }

    @Test func stalledLeasesOfOtherGroupsComeBack() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.leased(fixture)
            try await fixture.age(.progress, by: .seconds(3_600))
            let swept = try await fixture.store.sweepStalled(stall: .seconds(60))
            #expect(swept.leases == 1 && swept.stuck == ["bad"])
            #expect(try await fixture.leasedGroups() == ["bad"])
        }
    }

    @Test(
        arguments: [
            (#"[{"from": "noon", "to": "13:00", "bytesPerSecond": 1}]"#, nil),
            (#"[{"from": "00:00", "to": "00:00", "bytesPerSecond": "much"}]"#, nil),
            (#"[{"from": "00:00", "to": "00:01", "timeZone": "Nowhere/Atlantis", "bytesPerSecond": 1}]"#, nil),
            (nil, "Nowhere/Atlantis"),
        ] as [(String?, String?)])
    func aGroupWithUnreadableHoursWaitsAndOthersGoOn(timetable: String?, zone: String?) async throws {
        try await StoreFixture.run { fixture in
            // The flawed group would be served first.
            try await fixture.makeGroup("bad", [Wanted("b")], priority: 1, isSealed: true)
            try await fixture.makeGroup("good", [Wanted("a")], isSealed: true)
            try await fixture.setHours(of: "bad", timetable: timetable, zone: zone)
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(8).map(\.path) == ["a"])
            let flawed = try await fixture.store.flawedHours()
            #expect(flawed.map { $0.group } == ["bad"] && flawed.allSatisfy { !$0.flaw.isEmpty })
            _ = try await fixture.store.sweepGroups()
            _ = try await worker.sync()
            try await fixture.setHours(of: "bad")
            #expect(try await worker.claim(8).map(\.path) == ["b"])
            #expect(try await fixture.store.flawedHours().isEmpty)
        }
    }
}

extension Observed<[String]> {
    /// Keeps the names of the stuck groups that the store reports.
    fileprivate var note: Store.StuckGroups { { names in self.update { $0 = names } } }
}
