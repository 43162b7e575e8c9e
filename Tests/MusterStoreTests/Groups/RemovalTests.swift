import MusterCore
import MusterStore
import Testing

/// What is left to do after a removal that deletes files.
@Suite struct RemovalTests {
    @Test func filesAreLeftUntilAWorkerHasDeletedThem() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3, size: 90), isSealed: true)
            var worker = try await fixture.makeWorker()
            for lease in try await worker.claim(2) { try await worker.finish(lease, size: 90) }
            #expect(try await fixture.store.removal(of: "g") == nil)
            #expect(try await fixture.store.remove("g", keys: nil, deletingFiles: true) == 3)
            // Only files that were finished count; the workers that could delete them are told.
            let removal = try #require(try await fixture.store.removal(of: "g"))
            #expect(removal.files == 2 && removal.workersReaching == 1)
            #expect(try await fixture.store.removals(after: nil, limit: 10) == [removal])
            #expect(try await fixture.store.removals(after: "g", limit: 10).isEmpty)
            let purges = try await worker.claim(9)
            #expect(purges.map(\.kind) == [.purge, .purge])
            #expect(try await fixture.store.removal(of: "g")?.files == 2)
            try await worker.done(purges[0])
            #expect(try await fixture.store.removal(of: "g")?.files == 1)
            // Given back, it is still to be done.
            try await worker.release(purges[1])
            #expect(try await fixture.store.removal(of: "g")?.files == 1)
            for purge in try await worker.claim(9) { try await worker.done(purge) }
            #expect(try await fixture.store.removal(of: "g") == nil)
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

    @Test func keptFilesAreNothingToWaitFor() async throws {
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
            #expect(try await fixture.store.removalFate(of: "g") == .init(deleted: 3, kept: 0, keptBy: nil))
            try await fixture.makeGroup("x", [Wanted("b"), Wanted("c")], isSealed: true)
            for lease in try await worker.claim(3) { try await worker.finish(lease, size: 10) }
            #expect(try await fixture.store.removalFate(of: "g") == .init(deleted: 1, kept: 2, keptBy: "x"))
            #expect(
                try await fixture.store.removalFate(of: "g", keys: ["a", "b"])
                    == .init(deleted: 1, kept: 1, keptBy: "x"))
            try await fixture.store.remove("g", keys: nil, deletingFiles: true)
            #expect(try await fixture.store.removal(of: "g")?.files == 1)
        }
    }
}
