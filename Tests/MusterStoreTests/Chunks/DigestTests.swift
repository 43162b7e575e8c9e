import MusterCore
import MusterStore
import Testing

/// Content with another digest than expected, and the leftovers of a version that is no longer needed (range contract, rows 6 and 29).
@Suite struct DigestTests {
    /// Fetches a file of 90 bytes whole, and reports a digest mismatch. Sources are mixed only before the first mismatch.
    private func mismatch(_ worker: inout TestWorker, mixes: Bool = false) async throws -> GrantedLease {
        let lease = try #require(try await worker.claim(9).first { $0.kind == .fetch })
        try await worker.answer(lease, size: 90, etag: "\"\(lease.version)\"")
        #expect(try await worker.fixture.tasks()[0].mixes == mixes)
        try await worker.fail(lease, .digestMismatch, at: 90)
        return lease
    }

    @Test func digestMismatchIsFetchedOnceMoreThenFromTheNextSource() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b", "c"])], isSealed: true)
            try await fixture.expectDigests()
            var worker = try await fixture.makeWorker()
            var sources: [Int32] = []
            for version in 1...4 as ClosedRange<Int32> {
                let lease = try await mismatch(&worker, mixes: version == 1)
                #expect(lease.version == version && lease.resume.offset == 0)
                sources.append(lease.source)
                try await fixture.check()
            }
            #expect(sources == [0, 0, 1, 2])
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .digestMismatch && task.bytesDone == 0)
            #expect(try await fixture.outcomes() == ["startOver", "nextSource", "nextSource", "failed"])
            #expect(try await fixture.told("task.changed", "key").count == 4)
        }
    }

    @Test func onlySourceIsAskedTwiceAndTheBadPartIsNotKept() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            _ = try await mismatch(&worker)
            #expect(try await fixture.purgedVersions() == [1])
            _ = try await mismatch(&worker)
            #expect(try await fixture.purgedVersions() == [2], "the first one is being deleted")
            try await worker.letGo()
            try await fixture.check()
            #expect(try await fixture.store.group("g").state == .failed)
            // A retry forgets the mismatches.
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            let lease = try await mismatch(&worker)
            #expect(lease.version == 3)
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").state == .queued)
            try await worker.finishEverything(size: 90)
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    @Test func mismatchFoundWhileFinalizingCountsAgainstTheVersionsSource() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            try await fixture.expectDigests()
            var worker = try await fixture.makeWorker()
            // Source 0 refuses, so that the version is learned from source 1.
            try await worker.refuse(try #require(try await worker.claim().first), 451)
            for round in 1...2 {
                while let lease = try await worker.claimWork().first {
                    if lease.kind == .finalize {
                        try await worker.fail(lease, .digestMismatch)
                        break
                    }
                    if !lease.isPlanned { try await worker.answer(lease, size: 150) }
                    try await worker.done(lease)
                }
                try await fixture.check()
                #expect(try await fixture.sources().map(\.mismatches) == [0, Int32(round)])
            }
            #expect(try await fixture.store.group("g").state == .failed)
        }
    }

    @Test func oldVersionIsDeletedWhetherItsTaskIsPausedCancelledOrRemoved() async throws {
        for verb in [TaskVerb.pause, .cancel, nil] {
            try await StoreFixture.run { fixture in
                try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
                var worker = try await fixture.makeWorker()
                let lease = try #require(try await worker.claim().first)
                try await worker.answer(lease, size: 250)
                try await worker.fail(lease, .changed, at: 50)
                try await fixture.check()
                #expect(try await fixture.purgedVersions() == [1])
                try await worker.letGo()
                switch verb {
                case .pause?:
                    _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
                    let purge = try #require(try await worker.claim(9).first)
                    #expect(purge.kind == .purge && purge.version == 1)
                    _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
                    try await worker.done(purge)
                case .cancel?:
                    // One purge deletes the cancelled version and all before it.
                    _ = try await fixture.store.apply(.cancel, to: "g", keys: nil)
                    #expect(try await fixture.purgedVersions() == [2])
                case .resume?, .retry?, nil:
                    // The purge of a task that has succeeded meanwhile stays, even when the task is removed.
                    let next = try #require(try await worker.claim(2).first { $0.kind == .fetch })
                    try await fixture.orphanPurges()
                    try await worker.finish(next, size: 90)
                    _ = try await fixture.store.sweepSessions()
                    try await fixture.store.remove("g", keys: nil, deletingFiles: false)
                    #expect(try await fixture.purgedVersions() == [1])
                }
                try await fixture.check()
                try await worker.finishEverything()
                #expect(try await fixture.purgedVersions() == [])
            }
        }
    }
}
