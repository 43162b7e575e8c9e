import MusterCore
import MusterStore
import Testing

/// Users' verbs on groups and tasks.
@Suite struct VerbTests {
    @Test func pauseKeepsTheBytesAndFencesTasksThatMayStillBeWritten() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3, size: 90), isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.progress(lease, to: 40)
            for _ in 0..<2 {
                let group = try await fixture.store.apply(.pause, to: "g", keys: nil)
                #expect(group.tasks[.paused] == 3 && group.bytesDone == 40)
                try await fixture.check()
            }
            #expect(try await worker.claim(9).isEmpty)
            #expect(try await worker.progress(lease, to: 60) == false)
            for _ in 0..<2 {
                let group = try await fixture.store.apply(.resume, to: "g", keys: nil)
                #expect(group.tasks[.queued] == 3)
                try await fixture.check()
            }
            try await worker.letGo()
            let leases = try await worker.claim(9)
            #expect(leases.map(\.resume.offset).sorted() == [0, 0, 40])
            #expect(leases.filter(\.isFenced).map(\.resume.offset) == [40])
        }
    }

    @Test func verbsWithKeysApplyOnlyToThoseTasks() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            #expect(try await fixture.store.apply(.pause, to: "g", keys: ["t1", "t2"]).tasks[.paused] == 2)
            try await fixture.check()
            #expect(try await fixture.store.apply(.resume, to: "g", keys: ["t2"]).tasks[.paused] == 1)
            #expect(try await fixture.store.apply(.cancel, to: "g", keys: ["t1", "t3"]).tasks[.cancelled] == 2)
            try await fixture.check()
            await #expect(throws: Store.Refusal.noSuchTask("x")) {
                try await fixture.store.apply(.pause, to: "g", keys: ["t2", "x"])
            }
            await #expect(throws: Store.Refusal.noSuchGroup("h")) {
                try await fixture.store.apply(.pause, to: "h", keys: nil)
            }
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(9).map(\.path).sorted() == ["t2", "t4"])
            try await fixture.check()
        }
    }

    @Test func pausedGroupAcceptsTasksAndKeepsThemPaused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            _ = try await fixture.add(Wanted.many(2), to: "g")
            #expect(try await fixture.store.group("g").tasks[.paused] == 2)
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(9).isEmpty)
            _ = try await fixture.store.apply(.resume, to: "g", keys: ["t1"])
            try await fixture.check()
            #expect(try await worker.claim(9).map(\.path) == ["t1"])
        }
    }

    @Test func resumingNothingByNameLeavesTheGroupPaused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            _ = try await fixture.store.apply(.cancel, to: "g", keys: ["t2"])
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            for keys in [[], ["t2"]] {
                let group = try await fixture.store.apply(.resume, to: "g", keys: keys)
                #expect(group.isPaused && group.changedTasks == 0)
            }
            _ = try await fixture.add([Wanted("new")], to: "g")
            #expect(try await fixture.store.group("g").tasks[.paused] == 2)
            try await fixture.check()
        }
    }

    @Test func verbsOnKeysReturnTheNumberOfChangedTasks() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(5))
            for (verb, keys, changed) in [
                (TaskVerb.pause, ["t1", "t2"], 2), (.pause, ["t2", "t3"], 1), (.resume, ["t1", "t4"], 1),
                (.cancel, ["t1", "t2"], 2), (.cancel, ["t1", "t3"], 1), (.retry, ["t1"], 0), (.pause, ["t1"], 0),
            ] as [(TaskVerb, [String], Int64)] {
                #expect(try await fixture.store.apply(verb, to: "g", keys: keys).changedTasks == changed)
            }
            #expect(try await fixture.store.remove("g", keys: ["t1", "t4"], deletingFiles: false) == 2)
            // The request is refused as a whole.
            await #expect(throws: Store.Refusal.noSuchTask("t4")) {
                try await fixture.store.remove("g", keys: ["t5", "t4"], deletingFiles: false)
            }
            #expect(try await fixture.store.task("t5", of: "g").state == .queued)
            try await fixture.check()
        }
    }

    @Test func cancelEndsTheGroupAndPurgesItsParts() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3, size: 90))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            try await worker.finish(leases[0], size: 90)
            try await worker.progress(leases[1], to: 30)
            for _ in 0..<2 {
                let group = try await fixture.store.apply(.cancel, to: "g", keys: nil)
                #expect(group.state == .cancelled && group.tasks[.cancelled] == 2 && group.tasks[.succeeded] == 1)
                #expect(group.bytesDone == 90 && group.bytesTotal == 90)
                try await fixture.check()
            }
            #expect(try await worker.progress(leases[1], to: 50) == false)
            try await worker.letGo()
            // Of the three tasks one never began and one has finished.
            let left = try await worker.claim(9)
            #expect(left.map(\.kind) == [.purge] && left.map(\.task) == [leases[1].task])
            await #expect(throws: Store.Refusal.groupFinished(newKey: "new", line: 1)) {
                try await fixture.add([Wanted("new")], to: "g")
            }
        }
    }

    /// A failed task keeps its bytes for a retry until it is cancelled.
    @Test(arguments: [nil, ["t1"]])
    func cancelDropsWhatFailedTasksKept(keys: [String]?) async throws {
        let ending: GroupState = keys == nil ? .cancelled : .open
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t1", size: 90), Wanted("other", size: 90)])
            var worker = try await fixture.makeWorker()
            let granted = try await worker.claim(2)
            let lease = granted[0]
            #expect(lease.path == "t1")
            try await worker.progress(lease, to: 30)
            try await worker.fail(lease, .storage, at: 40)
            for _ in 0..<2 {
                let group = try await fixture.store.apply(.cancel, to: "g", keys: keys)
                #expect(group.state == ending)
                #expect(group.tasks[.failed] == 1)
                #expect(group.bytesDone == 0)
                try await fixture.check()
            }
            try await worker.letGo()
            let purges = try await worker.claim(9)
            #expect(purges.filter { $0.kind == .purge && $0.path == "t1" }.map(\.version) == [1])
            // If the task is retried nevertheless, it starts over once no purge is left at its path (I17).
            _ = try await fixture.store.apply(.retry, to: "g", keys: ["t1"])
            #expect(try await worker.claim(9).isEmpty)
            for purge in purges where purge.kind == .purge { try await worker.done(purge) }
            try await fixture.passBackoffs()
            let again = try await worker.claim(9)
            #expect(again.filter { $0.path == "t1" }.map(\.version) == [2])
            #expect(again.filter { $0.path == "t1" }.map(\.resume.offset) == [0])
            try await fixture.check()
        }
    }

    /// What a failed task kept, and a cancel has deleted, is deleted also if the task is removed before that has happened (I13).
    @Test(arguments: [false, true])
    func removalKeepsTheDeletionThatACancelBegan(isUnderWay: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t1", size: 90), Wanted("other", size: 90)])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim(1).first)
            try await worker.progress(lease, to: 30)
            try await worker.fail(lease, .storage, at: 40)
            _ = try await fixture.store.apply(.cancel, to: "g", keys: ["t1"])
            try await worker.letGo()
            let begun = isUnderWay ? try await worker.claim(9).filter { $0.kind == .purge } : []
            #expect(begun.count == (isUnderWay ? 1 : 0))
            _ = try await fixture.store.remove("g", keys: ["t1"], deletingFiles: false)
            try await worker.letGo()
            #expect(try await worker.claim(9).filter { $0.kind == .purge }.map(\.task) == [lease.task])
            try await fixture.check()
        }
    }

    @Test func aReportedFailureIsNoLostLease() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            try await worker.fail(try #require(try await worker.claim().first), .storage)
            #expect(
                try await fixture.count(of: "holdouts") == 0, "its reporter has stopped")
            try await fixture.check()
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            let lease = try #require(try await worker.claim().first)
            #expect(!lease.isFenced, "no lost lease may still write the part (I8)")
        }
    }

    /// Fails the task `t1`, and finishes the other one.
    private static func endBoth(_ worker: inout TestWorker) async throws {
        let leases = try await worker.claim(2)
        for lease in leases where lease.path == "t1" { try await worker.fail(lease, .storage) }
        for lease in leases where lease.path != "t1" { try await worker.finish(lease, size: 90) }
    }

    @Test func retryOpensTheNextGeneration() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, size: 90), isSealed: true)
            var worker = try await fixture.makeWorker()
            for generation in 1...3 as ClosedRange<Int32> {
                try await Self.endBoth(&worker)
                let failed = try await fixture.store.group("g")
                #expect(failed.state == .failed && failed.generation == generation && failed.finishedAt != nil)
                try await fixture.check()
                let again = try await fixture.store.apply(.retry, to: "g", keys: ["t1"])
                #expect(again.state == .sealed && again.generation == generation + 1 && again.finishedAt == nil)
                #expect(try await fixture.store.task("t1", of: "g").failure == nil, "the old failure is cleared")
                // No task is failed any more.
                #expect(try await fixture.store.apply(.retry, to: "g", keys: nil).generation == generation + 1)
                try await fixture.check()
            }
            try await worker.finishEverything()
            #expect(try await fixture.store.group("g").state == .succeeded)
            try await fixture.check()
        }
    }

    @Test func retryEndsAGroupWhoseFailedTasksWereRemoved() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, size: 90), isSealed: true)
            try await fixture.makeGroup("next", [Wanted("u")])
            let wish = GroupChange(prerequisites: [GroupPrerequisite(group: "g", on: .succeeded)])
            _ = try await fixture.store.change("next", wish)
            var worker = try await fixture.makeWorker()
            try await Self.endBoth(&worker)
            #expect(try await fixture.store.remove("g", keys: ["t1"], deletingFiles: false) == 1)
            #expect(try await fixture.store.group("g").state == .failed, "a removal opens no generation")
            // No task with these keys has failed: no generation is opened.
            #expect(try await fixture.store.apply(.retry, to: "g", keys: ["t2"]).generation == 1)
            // Once the group has succeeded there is nothing to retry.
            for _ in 0..<2 {
                let group = try await fixture.store.apply(.retry, to: "g", keys: nil)
                #expect(group.state == .succeeded && group.generation == 2 && group.changedTasks == 0)
                #expect(group.finishedAt != nil)
                try await fixture.check()
            }
            #expect(try await fixture.store.sweepGroups().released == 1)
            // The leftovers of the removed file are purged as well.
            #expect(try await worker.claim(9).filter { $0.kind == .fetch }.map(\.path) == ["u"])
        }
    }

    @Test func retryIsRefusedWhileAnotherTaskHasTheDestination() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", path: "file")], isSealed: true)
            var worker = try await fixture.makeWorker()
            try await worker.fail(try #require(try await worker.claim().first), .storage)
            try await fixture.makeGroup("h", [Wanted("u", path: "file")])
            await #expect(throws: Store.Refusal.destinationTaken("file", line: nil, by: "h")) {
                try await fixture.store.apply(.retry, to: "g", keys: nil)
            }
            try await fixture.check()
        }
    }

    @Test func removeDeletesRowsAndOnRequestFiles() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3, size: 90), isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(3)
            try await worker.finish(leases[0], size: 90)
            try await fixture.store.remove("g", keys: ["t1"], deletingFiles: true)
            try await fixture.check()
            let purge = try #require(try await worker.claim().first)
            #expect(purge.kind == .purge && purge.path == "t1" && purge.representation.size == 90)
            try await worker.done(purge)
            try await fixture.store.remove("g", keys: ["t2", "t3"], deletingFiles: false)
            try await fixture.check()
            let group = try await fixture.store.group("g")
            #expect(group.state == .succeeded && group.tasks.values.reduce(0, +) == 0 && group.bytesTotal == 0)
            try await worker.letGo()
            // These purges delete only files that carry the task's mark, since it is unknown whether one is there.
            let purges = try await worker.claim(9)
            #expect(purges.map(\.path) == ["t2", "t3"] && purges.allSatisfy { $0.representation.size == nil })
            try await fixture.store.remove("g", keys: nil, deletingFiles: true)
            await #expect(throws: Store.Refusal.noSuchGroup("g")) {
                try await fixture.store.remove("g", keys: nil, deletingFiles: true)
            }
            try await fixture.check()
            #expect(try await fixture.events().last?.type == "dev.muster.group.removed.v1")
        }
    }

    @Test func concurrentRemovalsHaveOneEffect() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(50))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        do {
                            try await fixture.store.remove("g", keys: nil, deletingFiles: false)
                        } catch Store.Refusal.noSuchGroup {
                            // Another removal was first.
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await fixture.check()
            #expect(try await fixture.events().count == 1)
        }
    }

    @Test func emptyGroupCompletesWhenItIsSealed() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g")
            #expect(try await fixture.store.group("g").state == .open)
            for _ in 0..<2 {
                let group = try await fixture.store.seal("g")
                #expect(group.state == .succeeded && group.generation == 1)
                try await fixture.check()
            }
            #expect(try await fixture.makeGroup("sealed", isSealed: true).state == .succeeded)
            try await fixture.check()
        }
    }

    @Test func openGroupNeverCompletes() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, size: 90))
            var worker = try await fixture.makeWorker()
            try await worker.finishEverything()
            #expect(try await fixture.store.group("g").state == .open)
            #expect(try await fixture.store.seal("g").state == .succeeded)
            try await fixture.check()
        }
    }

    @Test func pausedGroupCompletesItsFinalizations() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 90)
            try await worker.done(lease)
            let finalize = try #require(try await worker.claim().first)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            try await fixture.check()
            try await worker.finish(finalize, size: 90)
            try await fixture.check()
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }
}
