import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// Requests to a group, and reports on its leases, while another transaction holds the lock of its row (I19).
@Suite struct LockedGroupTests {
    @Test func additionToAGroupThatIsRemovedMeanwhileIsRefused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", isSealed: true)
            let upload = try await fixture.stage([Wanted("k")])
            let addition = try await fixture.pool.withTransaction { connection in
                try await fixture.apply("remove", on: connection)
                let addition = Task { try await fixture.store.addTasks(upload, to: "g", reopening: true) }
                try await eventually("that it is to be opened") { try await fixture.lockWaiters() == 1 }
                return addition
            }
            await #expect(throws: Store.Refusal.self) { try await addition.value }
            #expect(try await fixture.count(of: "tasks") == 0)
        }
    }

    @Test func aCancelIsAnsweredWhileTheGroupIsLockedAndAppliedAfterwards() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(10), isSealed: true)
            try await fixture.locking {
                let group = try await fixture.store.apply(.cancel, to: "g", keys: nil)
                #expect(group.state == .sealed && group.isCancelling && group.changedTasks == 0)
                // The sweep skips the locked group, and goes on with others.
                #expect(try await fixture.store.sweepWishes() == 0)
            }
            try await fixture.store.sweepAllWishes()
            let group = try await fixture.store.group("g")
            #expect(group.state == .cancelled && group.tasks[.cancelled] == 10)
            #expect(try await fixture.count(of: "wishes") == 0)
            try await fixture.check()
        }
    }

    @Test(arguments: [
        (TaskVerb.pause, TaskVerb.cancel, GroupState.cancelled), (.cancel, .pause, .cancelled),
        (.cancel, .resume, .cancelled),
        (.pause, .resume, .sealed),
    ])
    func strongerWishWinsAndOfEqualsTheLast(_ first: TaskVerb, _ second: TaskVerb, _ end: GroupState) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4), isSealed: true)
            try await fixture.locking {
                _ = try await fixture.store.apply(first, to: "g", keys: nil)
                _ = try await fixture.store.apply(second, to: "g", keys: nil)
            }
            try await fixture.store.sweepAllWishes()
            let group = try await fixture.store.group("g")
            #expect(group.state == end && !group.isPaused)
            try await fixture.check()
        }
    }

    @Test func aStoredWishOutranksAWeakerVerbOnTheUnlockedGroup() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4), isSealed: true)
            try await fixture.locking { _ = try await fixture.store.apply(.cancel, to: "g", keys: nil) }
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            try await fixture.store.sweepAllWishes()
            #expect(try await fixture.store.group("g").state == .cancelled)
            try await fixture.check()
        }
    }

    @Test func aRemovalIsAnsweredWhileTheGroupIsLocked() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4), isSealed: true)
            try await fixture.locking {
                let removed = try await fixture.store.remove("g", keys: nil, deletingFiles: false)
                #expect(removed == 0)
                #expect(try await fixture.store.group("g").isRemoving)
            }
            try await fixture.store.sweepAllWishes()
            await #expect(throws: Store.Refusal.self) { try await fixture.store.group("g") }
        }
    }

    @Test func aResumptionOfALargeLockedGroupIsAppliedCompletely() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(10), isSealed: true)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            try await fixture.locking { _ = try await fixture.store.apply(.resume, to: "g", keys: nil) }
            try await fixture.store.sweepAllWishes()
            let group = try await fixture.store.group("g")
            #expect(group.tasks[.queued] == 10 && !group.isPaused)
            try await fixture.check()
        }
    }

    @Test func verbsThatCanNotBeDeferredAreRefusedWhileTheGroupIsLocked() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            try await fixture.locking {
                let error = await #expect(throws: PostgresError.self) {
                    try await fixture.store.apply(.cancel, to: "g", keys: ["t1"])
                }
                #expect(error?.sqlState == .lockNotAvailable)
                let other = await #expect(throws: PostgresError.self) { try await fixture.store.seal("g") }
                #expect(other?.sqlState == .lockNotAvailable)
            }
        }
    }

    @Test func sweepsGoOnWithTheLeasesOfOtherGroups() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("a")], isSealed: true)
            try await fixture.makeGroup("h", [Wanted("b")], isSealed: true)
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(2).count == 2)
            let session = worker.session
            try await fixture.locking {
                let swept = try await fixture.expire(session)
                #expect(swept.leases == 1)
                #expect(try await fixture.count(of: "leases") == 1)
            }
            #expect(try await fixture.store.sweepSessions().leases == 1)
            try await fixture.check()
        }
    }

    @Test func aSyncIsRenewedWhileAGroupIsLocked() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("a")], isSealed: true)
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(1).count == 1)
            let locked = worker
            try await fixture.locking {
                // The worker reports that it holds nothing: its lease is put back as soon as the group is unlocked.
                var worker = locked
                try await worker.letGo()
            }
            var other = locked
            try await other.letGo()
            try await other.letGo()
            #expect(try await fixture.count(of: "leases") == 0)
            try await fixture.check()
        }
    }

    @Test func leasesOfLockedGroupsAreIdentified() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("a")], isSealed: true)
            try await fixture.makeGroup("h", [Wanted("b")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            let chunks = leases.map(\.name.chunk)
            #expect(try await fixture.store.lockedLeases(chunks).isEmpty)
            try await fixture.locking {
                let locked = try await fixture.store.lockedLeases(chunks)
                #expect(locked == Set(leases.filter { $0.path == "a" }.map(\.name.chunk)))
            }
        }
    }
}
