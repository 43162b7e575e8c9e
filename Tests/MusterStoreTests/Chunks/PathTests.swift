import MusterCore
import MusterStore
import Testing

/// Which session may put a file at a path, and which may delete it (I17, adr/0017).
@Suite struct PathTests {
    private static let task = [Wanted("t", size: 90, path: "p")]

    /// The paths of files to be deleted.
    private static func deletions(_ fixture: StoreFixture) async throws -> [String] {
        try await fixture.readyChunks().compactMap(\.removePath) + fixture.leases().compactMap(\.removePath)
    }

    /// Makes a group whose only file is in place at the path.
    private static func finished(_ name: String, _ worker: inout TestWorker, _ fixture: StoreFixture) async throws {
        try await fixture.makeGroup(name, task, isSealed: true)
        let lease = try #require(try await worker.claim().first)
        try await worker.finish(lease, size: 90)
        #expect(try await fixture.store.group(name).state == .succeeded)
    }

    @Test func everyLeaseNamesTheExpiredSessionsUntilTheyAreRevoked() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 90))
            try await fixture.makeGroup("h", Wanted.many(2, size: 90), sink: "elsewhere")
            var dead = try await fixture.makeWorker("dead", sinks: ["sink", "elsewhere"])
            var closed = try await fixture.makeWorker("closed")
            var other = try await fixture.makeWorker("other", sinks: ["sink", "elsewhere"])
            _ = try await dead.claim()
            _ = try await closed.claim()
            #expect(try await other.claim().map(\.revoke) == [[]])
            try await fixture.store.closeSession(closed.session)
            try await fixture.expire(dead.session)
            let leases = try await other.claim(9)
            #expect(Set(leases.map(\.sink)) == ["sink", "elsewhere"])
            #expect(leases.allSatisfy { $0.revoke == [dead.session] })
            try await fixture.store.settleRevocations([(sink: "sink", session: dead.session)])
            for lease in leases { try await other.release(lease) }
            for lease in try await other.claim(9) {
                #expect(lease.revoke == (lease.sink == "sink" ? [] : [dead.session]))
            }
        }
    }

    @Test(arguments: [false, true])
    func pathIsNotLeasedWhileAWorkerOfAnotherTaskMayStillWriteThere(isGivenUp: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Self.task)
            var writer = try await fixture.makeWorker("writer")
            var other = try await fixture.makeWorker("other")
            _ = try await writer.claim()
            _ = try await fixture.store.apply(.cancel, to: "g", keys: nil)
            try await fixture.makeGroup("h", Self.task)
            for _ in 0..<2 {
                #expect(try await other.claim(9).isEmpty)
                try await fixture.passBackoffs()
            }
            if isGivenUp {
                try await fixture.expire(writer.session)
                _ = try await fixture.store.releasePurges()
            } else {
                try await writer.letGo()
            }
            // First the old task's leftovers are purged, by a worker that revokes the expired session.
            let purge = try #require(try await other.claim(9).first)
            #expect(purge.kind == .purge && purge.path == "p" && purge.revoke == (isGivenUp ? [writer.session] : []))
            try await fixture.passBackoffs()
            #expect(try await other.claim(9).isEmpty)
            try await other.done(purge)
            try await fixture.passBackoffs()
            let fetch = try #require(try await other.claim(9).first)
            #expect(fetch.kind == .fetch && fetch.revoke == (isGivenUp ? [writer.session] : []))
            try await fixture.check()
        }
    }

    /// It puts nothing there, and its part has the name of its task.
    @Test func aLateChunkOfSeveralDoesNotHoldUpTheNextTaskAtItsPath() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 250, path: "p")])
            var writer = try await fixture.makeWorker("writer")
            var other = try await fixture.makeWorker("other")
            let lease = try #require(try await writer.claim().first)
            try await writer.learn(lease, size: 250)
            // The file has more than one chunk; the failure of the other one fails the task.
            let second = try #require(try await other.claim().first)
            try await other.fail(second, .refusedAddress)
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
            try await other.letGo()
            try await fixture.makeGroup("h", [Wanted("t", size: 90, path: "p")])
            #expect(try await other.claim(9).map(\.kind) == [.fetch])
            try await fixture.check()
        }
    }

    /// A purge recalled from a live session may still delete a file.
    @Test func aRecalledPurgeStillBlocksItsPath() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker("worker")
            var other = try await fixture.makeWorker("other")
            try await fixture.makeGroup("g", Self.task)
            _ = try await worker.claim()
            _ = try await fixture.store.apply(.cancel, to: "g", keys: nil)
            try await worker.letGo()
            #expect(try await worker.claim().map(\.kind) == [.purge])
            try await fixture.store.remove("g", keys: nil, deletingFiles: false)
            try await fixture.makeGroup("h", Self.task)
            #expect(try await other.claim(9).isEmpty)
            try await worker.letGo()
            #expect(try await other.claim(9).map(\.kind) == [.purge])
        }
    }

    /// Even the task itself, when retried, must not put a file where its own purge may still delete one.
    @Test func aRetriedTaskWaitsForItsOwnLatePurge() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker("worker")
            var other = try await fixture.makeWorker("other")
            try await fixture.makeGroup("g", Self.task, isSealed: true)
            let lease = try #require(try await worker.claim().first)
            try await worker.progress(lease, to: 30)
            try await worker.fail(lease, .storage, at: 40)
            _ = try await fixture.store.apply(.cancel, to: "g", keys: nil)
            try await worker.letGo()
            #expect(try await worker.claim().map(\.kind) == [.purge])
            try await fixture.age(.progress, by: .seconds(3_600))
            _ = try await fixture.store.sweepStalled(stall: .seconds(60))
            let purge = try #require(try await other.claim(9).first)
            try await other.done(purge)
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(try await other.claim(9).isEmpty)
            try await fixture.check()
            try await worker.letGo()
            try await fixture.passBackoffs()
            #expect(try await other.claim(9).map(\.kind) == [.fetch])
            try await fixture.check()
        }
    }

    @Test(arguments: [["g", "h"], ["h", "g"]])
    func aFileIsDeletedOnlyWithTheLastTaskOfItsPath(order: [String]) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await Self.finished("g", &worker, fixture)
            try await Self.finished("h", &worker, fixture)
            try await fixture.store.remove(order[0], keys: nil, deletingFiles: true)
            #expect(try await Self.deletions(fixture) == [])
            try await fixture.store.remove(order[1], keys: nil, deletingFiles: true)
            #expect(try await Self.deletions(fixture) == ["p"])
        }
    }

    @Test(arguments: [false, true])
    func aFileStaysWhileAnotherTaskWritesToItsPath(isLeased: Bool) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await Self.finished("g", &worker, fixture)
            try await fixture.makeGroup("h", Self.task)
            if isLeased { #expect(try await worker.claim().count == 1) }
            try await fixture.store.remove("g", keys: nil, deletingFiles: true)
            // A task that has not begun waits until the file is deleted.
            #expect(try await Self.deletions(fixture) == (isLeased ? [] : ["p"]))
            if !isLeased { #expect(try await worker.claim(9).map(\.kind) == [.purge]) }
        }
    }
}
