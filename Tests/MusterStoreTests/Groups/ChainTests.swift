import MusterCore
import MusterStore
import Testing

/// Groups that wait for other groups.
@Suite struct ChainTests {
    private static func after(_ groups: String..., on condition: PrerequisiteCondition = .succeeded) -> GroupChange {
        GroupChange(prerequisites: groups.map { GroupPrerequisite(group: $0, on: condition) })
    }

    @Test func aGroupBeginsWhenItsPrerequisitesAreSatisfied() async throws {
        try await StoreFixture.run { fixture in
            for name in ["a", "b"] { try await fixture.makeGroup(name, [Wanted(name, size: 90)], isSealed: true) }
            let upload = try await fixture.stage([Wanted("c", size: 90)])
            var creation = GroupCreation(name: "c", sink: "sink")
            creation.priority = 9
            creation.isSealed = true
            creation.prerequisites = ["a", "b"].map { GroupPrerequisite(group: $0, on: .succeeded) }
            let made = try await fixture.store.createGroup(creation, upload: upload)
            #expect(made.isHeld && made.prerequisites.map(\.group) == ["a", "b"])
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(9)
            #expect(leases.map(\.path).sorted() == ["a", "b"])
            for (index, lease) in leases.enumerated() {
                try await worker.finish(lease, size: 90)
                #expect(try await fixture.store.sweepGroups().released == Int64(index))
                #expect(try await fixture.store.group("c").prerequisites.count { $0.isSatisfied } == index + 1)
                try await fixture.check()
            }
            #expect(try await worker.claim(9).map(\.path) == ["c"])
            // A satisfied prerequisite stays satisfied.
            _ = try await fixture.store.reopen("a")
            #expect(try await fixture.store.change("c", Self.after("a", "b")).isHeld == false)
            #expect(try await fixture.store.change("c", Self.after("a", "b", on: .finished)).isHeld)
        }
    }

    @Test func failureReleasesOnlyGroupsThatWaitForAnyEnd() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("a", [Wanted("t")], isSealed: true)
            for name in ["well", "anyhow"] { try await fixture.makeGroup(name) }
            _ = try await fixture.store.change("well", Self.after("a"))
            _ = try await fixture.store.change("anyhow", Self.after("a", on: .finished))
            var worker = try await fixture.makeWorker()
            try await worker.fail(try #require(try await worker.claim().first), .storage)
            #expect(try await fixture.store.sweepGroups().released == 1)
            #expect(try await fixture.store.group("well").isHeld)
            #expect(try await fixture.store.group("anyhow").isHeld == false)
            _ = try await fixture.store.apply(.retry, to: "a", keys: nil)
            try await worker.finishEverything()
            #expect(try await fixture.store.sweepGroups().released == 1)
            #expect(try await fixture.store.group("well").isHeld == false)
            try await fixture.check()
        }
    }

    @Test func explanationNamesTheFailedGroupFurtherUpTheChain() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("a", [Wanted("t")], isSealed: true)
            for (name, before) in [("b", "a"), ("c", "b"), ("d", "b")] {
                try await fixture.makeGroup(name)
                _ = try await fixture.store.change(name, Self.after(before))
            }
            try await fixture.makeGroup("e")
            _ = try await fixture.store.change("e", Self.after("c", "d"))
            #expect(try await fixture.store.explanation(of: "e").situation.lost.isEmpty)
            var worker = try await fixture.makeWorker()
            try await worker.fail(try #require(try await worker.claim().first), .storage)
            let lost = try await fixture.store.explanation(of: "e").situation.lost
            #expect(lost.map(\.group) == ["a"] && lost[0].state == .failed && lost[0].on == .succeeded)
            try await fixture.check()
        }
    }

    @Test func aChainOfEmptyGroupsEndsInOneSweep() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g9")
            for n in (0..<9).reversed() {
                try await fixture.makeGroup("g\(n)")
                _ = try await fixture.store.change("g\(n)", Self.after("g\(n + 1)"))
                #expect(try await fixture.store.seal("g\(n)").state == .sealed)
            }
            #expect(try await fixture.store.seal("g9").state == .succeeded)
            #expect(try await fixture.store.sweepGroups().released == 9)
            #expect(try await fixture.store.group("g0").state == .succeeded)
            try await fixture.check()
        }
    }

    @Test func circlesAreRefusedWithTheirPath() async throws {
        try await StoreFixture.run { fixture in
            for name in ["a", "b", "c", "d"] { try await fixture.makeGroup(name) }
            _ = try await fixture.store.change("b", Self.after("a", "d"))
            _ = try await fixture.store.change("c", Self.after("b"))
            await #expect(throws: Store.Refusal.prerequisiteCycle(["a", "c", "b", "a"])) {
                try await fixture.store.change("a", Self.after("d", "c"))
            }
            await #expect(throws: Store.Refusal.prerequisiteCycle(["a", "a"])) {
                try await fixture.store.change("a", Self.after("a"))
            }
            await #expect(throws: Store.Refusal.noSuchPrerequisite("x")) {
                try await fixture.store.change("a", Self.after("d", "x"))
            }
            #expect(try await fixture.store.group("a").prerequisites.isEmpty)
            _ = try await fixture.store.seal("a")
            await #expect(throws: Store.Refusal.prerequisitesTooLate("a")) {
                try await fixture.store.change("a", Self.after("d"))
            }
            try await fixture.check()
        }
    }

    @Test func concurrentChangesOfPrerequisitesMakeNoCircle() async throws {
        try await StoreFixture.run { fixture in
            for name in ["a", "b", "c"] { try await fixture.makeGroup(name) }
            for _ in 0..<20 {
                let accepted = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for (name, other) in [("a", "b"), ("b", "c"), ("c", "a")] {
                        group.addTask {
                            do {
                                _ = try await fixture.store.change(name, Self.after(other))
                                return true
                            } catch Store.Refusal.prerequisiteCycle {
                                return false
                            }
                        }
                    }
                    return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
                #expect(accepted == 2)
                for name in ["a", "b", "c"] { _ = try await fixture.store.change(name, Self.after()) }
            }
        }
    }

    @Test func prerequisiteThatEndsDuringTheChangeStillReleasesTheGroup() async throws {
        try await StoreFixture.run(connections: 6) { fixture in
            for round in 0..<20 {
                try await fixture.makeGroup("first\(round)")
                try await fixture.makeGroup("second\(round)")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try await fixture.store.seal("first\(round)") }
                    group.addTask { _ = try await fixture.store.change("second\(round)", Self.after("first\(round)")) }
                    try await group.waitForAll()
                }
                _ = try await fixture.store.sweepGroups()
                #expect(try await fixture.store.group("second\(round)").isHeld == false)
            }
            try await fixture.check()
        }
    }

    @Test func aGroupIsNotRemovedWhileOthersWaitForIt() async throws {
        try await StoreFixture.run { fixture in
            for name in ["a", "b"] { try await fixture.makeGroup(name) }
            _ = try await fixture.store.change("b", Self.after("a"))
            await #expect(throws: Store.Refusal.groupInUse("a", by: "b")) {
                try await fixture.store.remove("a", keys: nil, deletingFiles: false)
            }
            // A cancelled group waits for it as soon as it is reopened.
            #expect(try await fixture.store.apply(.cancel, to: "b", keys: nil).state == .cancelled)
            await #expect(throws: Store.Refusal.groupInUse("a", by: "b")) {
                try await fixture.store.remove("a", keys: nil, deletingFiles: false)
            }
            #expect(try await fixture.store.reopen("b").isHeld)
            _ = try await fixture.store.change("b", Self.after())
            try await fixture.store.remove("a", keys: nil, deletingFiles: false)
            _ = try await fixture.store.sweepGroups()
            #expect(try await fixture.store.group("b").isHeld == false)
            try await fixture.check()
        }
    }

    @Test func leasesAreRecalledWhenTheirGroupGetsAPrerequisite() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("a")
            try await fixture.makeGroup("b", [Wanted("t", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.progress(lease, to: 30)
            _ = try await fixture.store.change("b", Self.after("a"))
            #expect(try await fixture.store.sweepGroups().recalled == 1)
            #expect(try await worker.claim(9).isEmpty)
            #expect(try await fixture.store.group("b").bytesDone == 30)
            _ = try await fixture.store.seal("a")
            _ = try await fixture.store.sweepGroups()
            try await worker.letGo()
            #expect(try await worker.claim(9).map(\.resume.offset) == [30])
            try await fixture.check()
        }
    }
}
