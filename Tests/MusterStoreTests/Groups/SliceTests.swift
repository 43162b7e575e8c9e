import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Verbs on groups that are larger than a slice, which is three tasks here.
@Suite struct SliceTests {
    /// Two finished files, two with running leases, and six that have not begun.
    private static func makeGroup(_ fixture: StoreFixture, isSealed: Bool = true) async throws -> TestWorker {
        try await fixture.makeGroup("g", Wanted.many(10, size: 90), isSealed: isSealed)
        var worker = try await fixture.makeWorker()
        for lease in try await worker.claim(2) { try await worker.finish(lease, size: 90) }
        for lease in try await worker.claim(2) { try await worker.progress(lease, to: 40) }
        return worker
    }

    /// Applies the first slice of a verb, as a request does that dies after it.
    private static func begin(_ verb: String, _ fixture: StoreFixture) async throws {
        #expect(try await !fixture.slice(verb).isDone)
    }

    @Test func everyVerbReachesAllTasksOfALargeGroup() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.makeGroup(fixture)
            let paused = try await fixture.store.apply(.pause, to: "g", keys: nil)
            #expect(paused.tasks[.paused] == 8 && paused.changedTasks == 8 && paused.bytesDone == 260)
            try await fixture.check()
            #expect(try await worker.claim(9).isEmpty)
            let resumed = try await fixture.store.apply(.resume, to: "g", keys: nil)
            #expect(resumed.tasks[.queued] == 8 && resumed.changedTasks == 8 && !resumed.isPaused)
            try await fixture.check()
            try await worker.letGo()
            for lease in try await worker.claim(4) { try await worker.fail(lease, .storage) }
            for lease in try await worker.claim(4) { try await worker.fail(lease, .storage) }
            #expect(try await fixture.store.group("g").state == .failed)
            let retried = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(retried.generation == 2 && retried.tasks[.queued] == 8 && retried.changedTasks == 8)
            let cancelled = try await fixture.store.apply(.cancel, to: "g", keys: nil)
            #expect(cancelled.state == .cancelled && cancelled.tasks[.cancelled] == 8 && cancelled.changedTasks == 8)
            try await fixture.check()
            #expect(try await fixture.store.remove("g", keys: nil, deletingFiles: true) == 10)
            try await fixture.check()
            #expect(try await fixture.groupEvents() == ["failed", "cancelled", "removed"])
        }
    }

    @Test(arguments: ["pause", "cancel"])
    func workersAreStoppedByTheFirstSliceAndNothingIsGrantedAfterIt(verb: String) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.makeGroup(fixture)
            try await Self.begin(verb, fixture)
            #expect(try await fixture.count(of: "leases") == 0)
            #expect(try await fixture.store.group("g").tasks[.queued] == 5)
            #expect(try await worker.claim(9).isEmpty)
            try await fixture.check()
        }
    }

    @Test func pauseWhoseRequestDiedIsFinishedByTheSweep() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.makeGroup(fixture)
            try await Self.begin("pause", fixture)
            try await fixture.store.sweepAllWishes()
            let group = try await fixture.store.group("g")
            #expect(group.tasks[.paused] == 8 && group.isPaused)
            try await fixture.check()
            #expect(try await fixture.isSwept())
        }
    }

    @Test func cancelWhoseRequestDiedIsFinishedByTheSweepAndCompletesOnce() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.makeGroup(fixture, isSealed: false)
            try await Self.begin("cancel", fixture)
            // The group has not ended yet, and takes no tasks.
            #expect(try await fixture.store.group("g").state == .sealed)
            await #expect(throws: Store.Refusal.groupFinished(newKey: "new", line: 1)) {
                try await fixture.add([Wanted("new")], to: "g")
            }
            // The cancel can't be undone either.
            for verb in [TaskVerb.pause, .resume] {
                #expect(try await fixture.store.apply(verb, to: "g", keys: nil).changedTasks == 0)
            }
            try await fixture.store.sweepAllWishes()
            #expect(try await fixture.store.group("g").state == .cancelled)
            #expect(try await fixture.store.apply(.cancel, to: "g", keys: nil).changedTasks == 0)
            try await fixture.check()
            #expect(try await fixture.groupEvents() == ["cancelled"])
        }
    }

    @Test(arguments: [RemovedBy.sweep, .repetition])
    func removalWhoseRequestDiedIsFinished(by: RemovedBy) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.makeGroup(fixture)
            try await Self.begin("remove_files", fixture)
            // The group no longer exists for requests, but keeps its name. Tasks that succeed now complete nothing.
            await #expect(throws: Store.Refusal.noSuchGroup("g")) {
                try await fixture.store.apply(.cancel, to: "g", keys: nil)
            }
            await #expect(throws: Store.Refusal.noSuchGroup("g")) { try await fixture.add([Wanted("new")], to: "g") }
            await #expect(throws: Store.Refusal.groupExists("g")) { try await fixture.makeGroup("g") }
            #expect(try await worker.claim(9).allSatisfy { $0.kind == .purge })
            try await fixture.check()
            switch by {
            case .sweep: try await fixture.store.sweepAllWishes()
            case .repetition: #expect(try await fixture.store.remove("g", keys: nil, deletingFiles: true) == 7)
            }
            await #expect(throws: Store.Refusal.noSuchGroup("g")) { try await fixture.store.group("g") }
            try await fixture.check()
            #expect(try await fixture.groupEvents() == ["removed"])
            // Both finished files are to be deleted.
            #expect(try await fixture.store.removal(of: "g")?.files == 2)
        }
    }

    /// What completes a removal.
    enum RemovedBy: Sendable, CaseIterable {
        case sweep, repetition
    }

    @Test func laterWishReplacesAnEarlierOneInTheMiddle() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.makeGroup(fixture)
            for (first, second) in [("pause", TaskVerb.resume), ("resume", .pause)] {
                try await Self.begin(first, fixture)
                let group = try await fixture.store.apply(second, to: "g", keys: nil)
                #expect(group.tasks[second == .pause ? .paused : .queued] == 8)
                // The next slice of the first verb finds that another verb has replaced it.
                let late = try await fixture.slice(first, isFirst: false)
                #expect(late.isDone && late.changed == 0)
                #expect(try await fixture.isSwept())
                #expect(try await fixture.store.group("g").tasks[second == .pause ? .paused : .queued] == 8)
                try await fixture.check()
                _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            }
        }
    }

    @Test func verbsAfterACancelCompleteItFirst() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.makeGroup(fixture)
            try await worker.fail(try #require(try await worker.claim().first), .storage)
            try await Self.begin("cancel", fixture)
            let retried = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(retried.generation == 2 && retried.tasks[.queued] == 1 && retried.tasks[.cancelled] == 7)
            try await fixture.check()
            _ = try await fixture.add(Wanted.many(9, "u"), to: "g", reopening: true)
            try await Self.begin("cancel", fixture)
            #expect(try await fixture.store.reopen("g").generation == 3)
            try await fixture.check()
            _ = try await fixture.add(Wanted.many(9, "v"), to: "g")
            try await Self.begin("cancel", fixture)
            #expect(try await fixture.add([Wanted("new")], to: "g", reopening: true).added == 1)
            let group = try await fixture.store.group("g")
            #expect(group.state == .open && group.generation == 4 && group.tasks[.queued] == 1)
            try await fixture.check()
        }
    }

    @Test func removalOfAGroupThatOthersWaitForDoesNotBegin() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Self.makeGroup(fixture)
            try await fixture.makeGroup("next")
            let waits = GroupChange(prerequisites: [GroupPrerequisite(group: "g", on: .finished)])
            _ = try await fixture.store.change("next", waits)
            await #expect(throws: Store.Refusal.groupInUse("g", by: "next")) {
                try await fixture.store.remove("g", keys: nil, deletingFiles: false)
            }
            #expect(try await fixture.store.group("g").tasks.values.reduce(0, +) == 10)
            try await fixture.check()
            // Nor can a group start to wait for one whose removal has begun.
            _ = try await fixture.store.change("next", GroupChange(prerequisites: []))
            try await Self.begin("remove", fixture)
            await #expect(throws: Store.Refusal.noSuchPrerequisite("g")) {
                try await fixture.store.change("next", waits)
            }
        }
    }

    /// An addition is all or nothing, and its transaction may take long.
    @Test func othersAreGrantedLeasesWhileAnAdditionIsNotCommitted() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            try await fixture.makeGroup("other", [Wanted("o")])
            let upload = try await fixture.stage(Wanted.many(5, "new"), isWritten: true)
            var worker = try await fixture.makeWorker()
            try await fixture.pool.withTransaction { connection in
                try await fixture.add(upload, to: "g", on: connection)
                #expect(try await worker.claim(9).map(\.path) == ["o"])
            }
            #expect(try await worker.claim(9).count == 6)
            try await fixture.check()
        }
    }

    @Test func taskThatReturnsToAPausedGroupIsPaused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)] + Wanted.many(4), isSealed: true)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            try await fixture.queuePausedTask("t")
            try await fixture.check()
            #expect(try await fixture.store.sweepWishes() == 1)
            #expect(try await fixture.store.group("g").tasks[.paused] == 5)
            try await fixture.check()
        }
    }
}
