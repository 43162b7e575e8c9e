import MusterCore
import MusterStore
import Testing

/// Groups whose deadline has passed, by the database's clock (I11).
@Suite struct GroupDeadlineTests {
    @Test func unfinishedTasksFailAndTheGroupEnds() async throws {
        try await StoreFixture.run { fixture in
            // Tasks of every state, in a group that is still open.
            try await fixture.makeGroup("g", Wanted.many(6, size: 90))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.finish(leases[0], size: 90)
            try await worker.learn(leases[1], size: 90)
            try await worker.done(leases[1])
            try await worker.fail(leases[2], .storage)
            try await worker.progress(leases[3], to: 40)
            _ = try await fixture.store.apply(.pause, to: "g", keys: ["t5"])
            try await fixture.passDeadline(of: "g")
            let swept = try await fixture.store.sweepGroups()
            #expect(swept.expired == 1 && swept.failedTasks == 4)
            let group = try await fixture.store.group("g")
            #expect(group.state == .failed && group.isOverdue && group.tasks[.failed] == 5)
            #expect(try await fixture.store.task("t6", of: "g").failure?.kind == .deadline)
            #expect(try await fixture.store.task("t3", of: "g").failure?.kind == .storage)
            #expect(try await fixture.store.sweepGroups().expired == 0)
            #expect(try await worker.claim(9).isEmpty)
            try await fixture.check()

            // A retry keeps what was fetched, and starts the time limit again.
            let again = try await fixture.store.apply(.retry, to: "g", keys: nil)
            let now = try await fixture.store.now()
            #expect(again.generation == 2 && !again.isOverdue && again.bytesDone == 220)
            #expect((again.deadlineAt?.microseconds ?? 0) - now.microseconds > 3_500_000_000)
            #expect(try await fixture.store.sweepGroups().expired == 0)
            try await worker.finishEverything(size: 90)
            #expect(try await fixture.store.group("g").state == .succeeded)
            try await fixture.check()
        }
    }

    /// More tasks might have come if the client that adds them had not died.
    @Test(arguments: [0, 2])
    func aGroupThatIsStillOpenAtItsDeadlineFails(tasks: Int) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", tasks == 0 ? [] : Wanted.many(tasks, size: 90))
            var worker = try await fixture.makeWorker()
            try await worker.finishEverything(size: 90)
            try await fixture.passDeadline(of: "g")
            _ = try await fixture.store.sweepGroups()
            let group = try await fixture.store.group("g")
            #expect(group.state == .failed && group.isOverdue && group.tasks[.succeeded] == Int64(tasks))
            #expect(try await fixture.groupEvents() == ["failed"])
            try await fixture.check()
        }
    }

    @Test func manyTasksFailInSteps() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(25, size: 90), isSealed: true)
            var worker = try await fixture.makeWorker()
            try await fixture.passDeadline(of: "g")
            var failed: [Int64] = []
            while failed.last != 5 {
                failed.append(try await fixture.store.sweepGroups(limit: 10).failedTasks)
                // Nothing is granted meanwhile, and nothing is added.
                #expect(try await worker.claim(9).isEmpty)
                try await fixture.check()
                try #require(failed.count < 9)
            }
            #expect(failed == [10, 10, 5])
            #expect(try await fixture.store.group("g").state == .failed)
        }
    }

    @Test func aGroupThatGoesOnAfterItsDeadlineReportsItOnce() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            try await fixture.passDeadline(of: "g", .continue)
            #expect(try await fixture.store.sweepGroups().expired == 1)
            #expect(try await fixture.store.sweepGroups().expired == 0)
            #expect(try await fixture.store.group("g").isOverdue)
            let id = try await fixture.store.group("g").id
            #expect(try await fixture.events().map(\.id) == ["grp-\(id)-1-overdue"])
            try await worker.finishEverything(size: 90)
            #expect(try await fixture.store.group("g").state == .succeeded)
            #expect(try await fixture.store.reopen("g").isOverdue == false)
            try await fixture.check()
        }
    }

    @Test func aGroupThatOnlyWaitedFailsWithItsDeadline() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("first", [Wanted("t")])
            try await fixture.makeGroup("g")
            _ = try await fixture.store.change(
                "g", GroupChange(prerequisites: [GroupPrerequisite(group: "first", on: .finished)]))
            #expect(try await fixture.store.seal("g").state == .sealed)
            try await fixture.passDeadline(of: "g")
            _ = try await fixture.store.sweepGroups()
            #expect(try await fixture.store.group("g").state == .failed)
            try await fixture.check()
        }
    }

    @Test func lockedGroupsAreLeftForTheNextRound() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            try await fixture.passDeadline(of: "g")
            try await fixture.locking {
                let expired = try await fixture.store.sweepGroups().expired
                #expect(expired == 0)
            }
            #expect(try await fixture.store.sweepGroups().expired == 1)
        }
    }
}
