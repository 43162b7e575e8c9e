import MusterCore
import MusterStore
import Testing

/// The work that remains after a removal with deletion of files.
@Suite struct RemovalTests {
    @Test func filesAreLeftUntilAWorkerHasDeletedThem() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3, size: 90), isSealed: true)
            var worker = try await fixture.makeWorker()
            for lease in try await worker.claim(2) { try await worker.finish(lease, size: 90) }
            #expect(try await fixture.store.removal(of: "g") == nil)
            #expect(try await fixture.store.remove("g", keys: nil, deletingFiles: true) == 3)
            // Only finished files count; the removal states how many workers reach the sink.
            let removal = try #require(try await fixture.store.removal(of: "g"))
            #expect(removal.files == 2 && removal.workersReaching == 1)
            #expect(try await fixture.store.removals(after: nil, limit: 10) == [removal])
            #expect(try await fixture.store.removals(after: "g", limit: 10).isEmpty)
            let purges = try await worker.claim(9)
            #expect(purges.map(\.kind) == [.purge, .purge])
            #expect(try await fixture.store.removal(of: "g")?.files == 2)
            try await worker.done(purges[0])
            #expect(try await fixture.store.removal(of: "g")?.files == 1)
            // A released purge is still to be done.
            try await worker.release(purges[1])
            #expect(try await fixture.store.removal(of: "g")?.files == 1)
            for purge in try await worker.claim(9) { try await worker.done(purge) }
            #expect(try await fixture.store.removal(of: "g") == nil)
            try await fixture.check()
        }
    }

    @Test func reasonWhyAFileCanNotBeDeletedIsKeptUntilItIsDeleted() async throws {
        try await StoreFixture.run { fixture in
            let store = fixture.store
            try await fixture.makeGroup("g", Wanted.many(2, size: 90), isSealed: true)
            var worker = try await fixture.makeWorker()
            for lease in try await worker.claim(2) { try await worker.finish(lease, size: 90) }
            try await store.remove("g", keys: nil, deletingFiles: true)
            let purges = try await worker.claim(9)
            try #require(purges.count == 2)
            #expect(try await store.removal(of: "g")?.failure == nil)
            try await worker.fail(purges[0], .noPermission, detail: "deleting a: no")
            var removal = try #require(try await store.removal(of: "g"))
            #expect(removal.files == 2 && removal.failed == 1 && removal.failure == "deleting a: no")
            #expect(try await worker.claim(9).isEmpty)
            // During the next try, and after its release, the last known failure is still reported.
            try await fixture.passBackoffs()
            let again = try #require(try await worker.claim(9).first)
            #expect(try await store.removal(of: "g") == removal)
            try await worker.release(again)
            #expect(try await store.removal(of: "g") == removal)
            try await worker.done(try #require(try await worker.claim(9).first), removed: .deleted)
            removal = try #require(try await store.removal(of: "g"))
            #expect(removal.files == 1 && removal.failed == 0 && removal.failure == nil)
            try await worker.done(purges[1], removed: .deleted)
            #expect(try await store.removal(of: "g") == nil)
            try await fixture.check()
        }
    }

    @Test func outcomesOfDeletionsAreCountedUntilTheNextRemovalOfTheName() async throws {
        try await StoreFixture.run { fixture in
            let store = fixture.store
            var worker = try await fixture.makeWorker()
            func remove(_ count: Int) async throws -> [GrantedLease] {
                try await fixture.makeGroup("g", Wanted.many(count, size: 90), isSealed: true)
                for lease in try await worker.claim(9) { try await worker.finish(lease, size: 90) }
                try await store.beginRemoval(of: "g")
                try await store.remove("g", keys: nil, deletingFiles: true)
                return try await worker.claim(9)
            }
            let purges = try await remove(4)
            #expect(purges.count == 4)
            #expect(try await store.removalOutcome(of: "g") == nil)
            for (purge, removed) in zip(purges, [.deleted, .changed, .missing] as [RemovedFile]) {
                try await worker.done(purge, removed: removed)
                // A sync whose answer was lost is repeated (I10).
                try await worker.done(purge, removed: removed)
            }
            // Some files are still to be deleted: no outcome is forgotten.
            try await store.beginRemoval(of: "g")
            try await worker.done(purges[3], removed: .deleted)
            #expect(try await store.removalOutcome(of: "g") == RemovalOutcome(deleted: 2, changed: 1, missing: 1))
            let next = try await remove(1)
            #expect(try await store.removalOutcome(of: "g") == nil)
            try await worker.done(try #require(next.first), removed: .missing)
            #expect(try await store.removalOutcome(of: "g") == RemovalOutcome(deleted: 0, changed: 0, missing: 1))
            try await store.dropRemovalOutcomes(olderThan: .seconds(60))
            #expect(try await store.removalOutcome(of: "g") != nil)
            try await store.dropRemovalOutcomes(olderThan: .zero)
            #expect(try await store.removalOutcome(of: "g") == nil)
            try await fixture.check()
        }
    }

    @Test func aNameCanBeTakenWhileFilesOfItsLastGroupAreLeft() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("a", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            for lease in try await worker.claim(1) { try await worker.finish(lease, size: 90) }
            _ = try await fixture.store.remove("g", keys: nil, deletingFiles: true)
            try await fixture.makeGroup("g", [Wanted("b", size: 90)], isSealed: true)
            #expect(try await fixture.store.removal(of: "g")?.files == 1)
            #expect(try await fixture.store.group("g").state == .sealed)
            #expect(try await fixture.store.remove("g", keys: nil, deletingFiles: false) == 1)
            #expect(try await fixture.store.removal(of: "g")?.files == 1)
        }
    }

    @Test func removalThatKeepsFilesIsOverAtOnce() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("a", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            for lease in try await worker.claim(1) { try await worker.finish(lease, size: 90) }
            _ = try await fixture.store.remove("g", keys: nil, deletingFiles: false)
            #expect(try await fixture.store.removal(of: "g") == nil)
        }
    }

    @Test func filesThatAnotherGroupHasPutInPlaceSinceAreCountedAsKept() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await fixture.makeGroup("g", [Wanted("a"), Wanted("b"), Wanted("c")], isSealed: true)
            for lease in try await worker.claim(3) { try await worker.finish(lease, size: 10) }
            #expect(try await fixture.store.removalFate(of: "g") == .init(toDelete: 3, kept: 0, keptBy: nil))
            try await fixture.makeGroup("x", [Wanted("b"), Wanted("c")], isSealed: true)
            for lease in try await worker.claim(3) { try await worker.finish(lease, size: 10) }
            #expect(try await fixture.store.removalFate(of: "g") == .init(toDelete: 1, kept: 2, keptBy: "x"))
            #expect(
                try await fixture.store.removalFate(of: "g", keys: ["a", "b"])
                    == .init(toDelete: 1, kept: 1, keptBy: "x"))
            try await fixture.store.remove("g", keys: nil, deletingFiles: true)
            #expect(try await fixture.store.removal(of: "g")?.files == 1)
        }
    }
}
