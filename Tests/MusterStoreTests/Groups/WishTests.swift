import MusterCore
import MusterStore
import Testing

/// Wishes that arrive in the middle of a transition, and writers that have to stop before anything is deleted (I13).
@Suite struct WishTests {
    /// A task whose file is being put in place.
    private static func finalizing(
        _ worker: inout TestWorker, _ fixture: StoreFixture
    ) async throws -> GrantedLease {
        try await fixture.makeGroup("g", [Wanted("t", size: 90), Wanted("u", origins: ["b"])], isSealed: true)
        let lease = try #require(try await worker.claim().first)
        try await worker.learn(lease, size: 90)
        try await worker.done(lease)
        return try #require(try await worker.claim().first { $0.kind == .finalize })
    }

    @Test(arguments: [nil, ["t"]] as [[String]?])
    func pauseDuringFinalizingHoldsIfTheFileIsFetchedAgain(keys: [String]?) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            let finalize = try await Self.finalizing(&worker, fixture)
            for _ in 0..<2 {
                let group = try await fixture.store.apply(.pause, to: "g", keys: keys)
                #expect(group.tasks[.finalizing] == 1)
            }
            try await worker.fail(finalize, .digestMismatch)
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").state == .paused)
            try await worker.letGo()
            #expect(try await worker.claim(9).filter { $0.kind == .fetch && $0.path == "t" }.isEmpty)
            _ = try await fixture.store.apply(.resume, to: "g", keys: keys)
            try await fixture.check()
            #expect(try await worker.claim(9).contains { $0.kind == .fetch && $0.path == "t" && $0.version == 2 })
        }
    }

    @Test func resumeDuringFinalizingRevokesThePause() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            let finalize = try await Self.finalizing(&worker, fixture)
            _ = try await fixture.store.apply(.pause, to: "g", keys: ["t"])
            _ = try await fixture.store.apply(.resume, to: "g", keys: ["t"])
            try await worker.fail(finalize, .digestMismatch)
            #expect(try await fixture.store.task("t", of: "g").state == .queued)
            try await fixture.check()
        }
    }

    @Test func leftoversWaitUntilTheirWriterHasStopped() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var writer = try await fixture.makeWorker("writer")
            var other = try await fixture.makeWorker("other")
            let lease = try #require(try await writer.claim().first)
            _ = try await fixture.store.apply(.cancel, to: "g", keys: nil)
            #expect(try await fixture.store.releasePurges() == 0)
            #expect(try await other.claim(9).isEmpty)
            // The writer has learned of the cancel, but some of its writes are still under way.
            #expect(try await writer.sync(settled: 1, held: [lease.name])?.lost == [lease.name])
            #expect(try await fixture.store.releasePurges() == 0)
            // The answer that granted the lease may still be on its way to the writer.
            try await writer.sync(settled: 0)
            #expect(try await fixture.store.releasePurges() == 0)
            try await writer.sync(settled: 1)
            #expect(try await fixture.store.releasePurges() == 1)
            #expect(try await other.claim(9).map(\.kind) == [.purge])
            try await fixture.check()
        }
    }

    /// The worker that lost the lease of a chunk may create or share a part after the other worker's file is in place, even before the other worker has
    /// reported it. By then it may have stopped, or its session may be over.
    @Test(arguments: ["after", "before", "gone"])
    func aPartThatIsCreatedAgainAfterTheFileIsInPlaceIsDeleted(end: String) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 150)], isSealed: true)
            var late = try await fixture.makeWorker("late")
            var other = try await fixture.makeWorker("other")
            let first = try #require(try await other.claim().first)
            try await other.learn(first, size: 150)
            try await other.done(first)
            let lost = try #require(try await late.claim().first)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
            try await other.done(try #require(try await other.claim().first))
            let lease = try #require(try await other.claim().first)
            #expect(lease.kind == .finalize)
            if end == "before" {
                try await late.sync(settled: 1)
            } else if end == "gone" {
                try await fixture.expire(late.session)
                #expect(try await fixture.store.releasePurges() == 0)
            }
            try await other.finish(lease, size: 150)
            #expect(try await fixture.store.task("t", of: "g").state == .succeeded)
            if end == "after" {
                #expect(try await other.claim(9).isEmpty)
                #expect(try await late.sync(settled: 1, held: [lost.name])?.lost == [lost.name])
                #expect(try await fixture.store.releasePurges() == 0)
                try await late.sync(settled: 1)
                #expect(try await fixture.store.releasePurges() == 1)
            }
            let purge = try #require(try await other.claim(9).first)
            #expect(purge.kind == .purge && purge.path.isEmpty && purge.version == 1)
            #expect(purge.revoke == (end == "gone" ? [late.session] : []))
            try await fixture.check()
        }
    }

    /// Otherwise the first worker puts the file there a second time, after the success was told (I8).
    @Test(arguments: ["stopped", "gone"])
    func aWholeFileIsLeasedOnceTheSessionThatLostItCannotPutItInPlaceAnyMore(end: String) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)], isSealed: true)
            var late = try await fixture.makeWorker("late")
            var other = try await fixture.makeWorker("other")
            let lost = try #require(try await late.claim().first)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
            for held in [[lost.name], []] {
                try await late.sync(held: held)
                try await fixture.passBackoffs()
                #expect(try await other.claim(9).isEmpty)
                try await fixture.check()
            }
            if end == "gone" {
                try await fixture.expire(late.session)
                _ = try await fixture.store.releasePurges()
            } else {
                try await late.letGo()
            }
            try await fixture.passBackoffs()
            #expect(try await other.claim(9).map(\.kind) == [.fetch])
            try await fixture.check()
        }
    }

    @Test(arguments: [true, false])
    func leftoversWaitNoLongerThanTheirWritersSession(isClosed: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, size: 90))
            var writer = try await fixture.makeWorker("writer")
            var other = try await fixture.makeWorker("other")
            _ = try await writer.claim(1)
            _ = try await other.claim(1)
            try await fixture.store.remove("g", keys: nil, deletingFiles: false)
            try await other.letGo()
            #expect(try await other.claim(9).map(\.kind) == [.purge])
            if isClosed {
                try await fixture.store.closeSession(writer.session)
            } else {
                try await fixture.expire(writer.session)
            }
            #expect(try await fixture.store.releasePurges() == 1)
            #expect(try await other.claim(9).map(\.kind) == [.purge])
        }
    }

    @Test func cancelWaitsForWritersOfAnEarlierPause() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var writer = try await fixture.makeWorker()
            let lease = try #require(try await writer.claim().first)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            _ = try await fixture.store.apply(.cancel, to: "g", keys: nil)
            try await writer.sync(settled: 1, held: [lease.name])
            #expect(try await fixture.store.releasePurges() == 0)
            // A pause alone leaves nothing to delete, so that the next pause waits for no holdout.
            try await writer.sync(settled: 1)
            #expect(try await fixture.store.releasePurges() == 1)
            #expect(try await fixture.count(of: "holdouts") == 0)
        }
    }

    @Test func resumeDoesNotReleaseWaitingPurges() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 250)])
            var first = try await fixture.makeWorker("first")
            var second = try await fixture.makeWorker("second")
            let lease = try #require(try await first.claim().first)
            try await first.learn(lease, size: 250)
            let next = try #require(try await second.claim().first)
            // The content has changed: the first session may still write leftovers of the old version.
            try await second.fail(next, .changed)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
            try await second.letGo()
            #expect(try await second.claim(9).map(\.kind) == [.fetch])
            try await first.letGo()
            #expect(try await second.claim(9).map(\.kind) == [.purge])
            try await fixture.check()
        }
    }
}
