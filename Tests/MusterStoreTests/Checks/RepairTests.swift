import MusterCore
import MusterStore
import Testing

/// What a check repairs, and what it leaves alone (adr/0048).
@Suite struct RepairTests {
    /// A check of a finished group with one file, of which the worker reports this.
    private static func check(
        _ fixture: StoreFixture, _ worker: inout TestWorker, _ kind: FindingKind, isOwn: Bool? = nil
    ) async throws -> Int64 {
        try await fixture.makeGroup("g", [Wanted("a", size: 90)], isSealed: true)
        for lease in try await worker.claim(1) { try await worker.finish(lease, size: 90) }
        let check = try await fixture.store.beginCheck(isDeep: true, repairs: true, sinks: [])
        let page = try #require(try await worker.page())
        let next = try await worker.saw(page) { report in
            report.files = page.files?.map { SeenFile($0, kind, "it is not what it was", isOwn: isOwn) }
        }
        #expect(next?.kind == .names)
        return check
    }

    @Test(arguments: [FindingKind.fileMissing, .fileChanged])
    func lostFileIsFetchedAgainInTheNextGeneration(kind: FindingKind) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            let check = try await Self.check(fixture, &worker, kind, isOwn: true)
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.pending])
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.repaired])
            var group = try await fixture.store.group("g")
            #expect(group.state == .sealed && group.generation == 2 && group.tasks[.succeeded] == 0)
            #expect(try await fixture.tasks().map(\.version) == [2])
            try await fixture.check()
            try await worker.finishEverything(size: 90)
            group = try await fixture.store.group("g")
            #expect(group.state == .succeeded && group.generation == 2)
            try await fixture.check()
        }
    }

    @Test func fileThatAnotherProgramHasWrittenToIsLeftAlone() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            let check = try await Self.check(fixture, &worker, .fileChanged, isOwn: false)
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.found])
            #expect(try await fixture.store.group("g").generation == 1)
            try await fixture.check()
        }
    }

    @Test func lostFileWhosePathAnotherTaskHasByNowIsLeftAlone() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            let check = try await Self.check(fixture, &worker, .fileMissing)
            try await fixture.makeGroup("h", [Wanted("a", size: 90)])
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.found])
            try await fixture.check()
        }
    }

    @Test func lostPartIsBegunAnewUnlessItIsLeased() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("c")])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim(1).first)
            try await worker.learn(first, size: 250)
            try await worker.done(first)
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: true, sinks: [])
            let parts = try #require(try await worker.page())
            #expect(parts.kind == .parts, "there is no finished file")
            let part = try #require(parts.parts?.first)
            try await worker.saw(parts) { $0.parts = [SeenPart(task: part.task, version: part.version)] }
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).map(\.kind) == [.partMissing])
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.repaired])
            #expect(try await fixture.tasks().map(\.version) == [2])
            #expect(try await fixture.doneChunks().isEmpty)
            try await fixture.check()
            try await worker.finishEverything()
            try await fixture.check()
        }
    }

    @Test func leftoversAreDeletedLikeThoseOfACancelledTask() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [], isSealed: true)
            var worker = try await fixture.makeWorker()
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: true, sinks: [])
            let names = try #require(try await worker.page())
            #expect(names.kind == .names)
            let suspects = try #require(
                try await worker.saw(names) { report in
                    report.parts = [SeenPart(task: TaskID(777), version: 3)]
                    report.sessions = [SessionID(9_999)]
                })
            try await worker.saw(suspects) { report in
                report.parts = [SeenPart(task: TaskID(777), version: 3, size: 5)]
                report.sessions = [SessionID(9_999)]
            }
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.repaired, .repaired])
            #expect(try await fixture.revocations(of: "sink") == [9_999])
            let purge = try #require(try await worker.claim(1).first)
            #expect(purge.kind == .purge && purge.task == TaskID(777) && purge.version == 3)
            try await worker.done(purge)
            try await fixture.check()
        }
    }

    @Test func groupIsCountedAnew() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: true, sinks: [])
            try await fixture.miscount("g")
            try await fixture.lookTwice()
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.repaired])
            #expect(try await fixture.store.group("g").tasks[.succeeded] == 0)
            try await fixture.check()
        }
    }
}
