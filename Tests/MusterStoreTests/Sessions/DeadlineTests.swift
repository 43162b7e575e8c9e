import MusterCore
import MusterStore
import Testing

/// Tasks with a time limit (range contract, row 33).
@Suite struct DeadlineTests {
    @Test func overdueTasksFailInEveryUnfinishedState() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(5, size: 90) + [Wanted("free", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            // One task is fetched, one waits, one is finalized, one is paused, one is queued.
            let leases = try await worker.claim(3)
            try await worker.fail(leases[1], .timeout)
            try await worker.learn(leases[2], size: 90)
            try await worker.done(leases[2])
            _ = try await fixture.store.apply(.pause, to: "g", keys: ["t4"])
            try await fixture.limitTime(to: .seconds(3_600), left: .seconds(3_600), except: "free")
            #expect(try await fixture.store.failOverdue() == 0)
            try await fixture.age(.deadline, by: .seconds(3_600))
            #expect(try await fixture.store.failOverdue() == 5)
            #expect(try await fixture.store.failOverdue() == 0)
            try await fixture.check()
            let group = try await fixture.store.group("g")
            #expect(group.tasks[.failed] == 5 && group.state == .sealed)
            let task = try await fixture.store.task("t1", of: "g")
            #expect(task.failure?.kind == .deadline && task.failure?.detail.contains("3600 s") == true)
            let late = try await fixture.store.task(leases[1].path, of: "g")
            #expect(late.failure?.detail.contains("; last failure: ") == true, "\(late.failure?.detail ?? "")")
            #expect(try await worker.progress(leases[0], to: 30) == false)
            // A retry starts the time limit again, and keeps the bytes.
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(try await fixture.store.failOverdue() == 0)
            try await worker.finishEverything()
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    @Test func overdueTasksFailInBatches() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(9), isSealed: true)
            try await fixture.limitTime(to: .seconds(1), left: .zero)
            #expect(try await fixture.store.failOverdue(limit: 2, rounds: 2) == 4)
            try await fixture.check()
            #expect(try await fixture.store.failOverdue(limit: 2) == 5)
            #expect(try await fixture.store.group("g").state == .failed)
        }
    }

    @Test func lockedGroupsAreLeftForTheNextRoundOfDeadlines() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("locked", [Wanted("l")])
            try await fixture.makeGroup("free", [Wanted("f")])
            try await fixture.limitTime(to: .seconds(1), left: .zero)
            try await fixture.locking("locked") {
                let count = try await fixture.store.failOverdue()
                #expect(count == 1)
            }
            #expect(try await fixture.store.task("l", of: "locked").state == .queued)
            #expect(try await fixture.store.failOverdue() == 1)
        }
    }
}
