import MusterCore
import MusterPostgres
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

    /// One generation for all of them, which completes once (I7), and only after all files were looked at.
    @Test func lostFilesOfAGroupAreFetchedAgainTogether() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(5, size: 90), isSealed: true)
            var worker = try await fixture.makeWorker()
            try await worker.finishEverything(size: 90)
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: true, sinks: [])
            let page = try #require(try await worker.page())
            #expect(page.files?.count == 5)
            try await worker.saw(page) { report in
                report.files = page.files?.prefix(4).map { SeenFile($0, .fileMissing, "nothing stands there") }
            }
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).map(\.outcome) == Array(repeating: .repaired, count: 4))
            var group = try await fixture.store.group("g")
            #expect(group.generation == 2 && group.tasks[.succeeded] == 1 && group.tasks[.queued] == 4)
            try await fixture.check()
            try await worker.finishEverything(size: 90)
            group = try await fixture.store.group("g")
            #expect(group.state == .succeeded && group.generation == 2)
            #expect(try await fixture.groupEvents() == ["succeeded", "succeeded"])
            try await fixture.check()
        }
    }

    @Test func lostFilesWaitUntilAllFilesOfTheirSinkWereLookedAt() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            let check = try await Self.check(fixture, &worker, .fileMissing)
            try await fixture.run("UPDATE check_walks SET phase = 'files'")
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.pending])
            try await fixture.run("UPDATE check_walks SET phase = 'names'")
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.repaired])
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

    @Test func findingsOfALockedGroupDoNotHoldUpThoseOfOthers() async throws {
        try await StoreFixture.run { fixture in
            for name in ["g", "h"] { try await fixture.makeGroup(name, Wanted.many(1, name)) }
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: true, sinks: [])
            // More than one round takes.
            try await fixture.addPendingFindings(201, of: "g", to: check)
            try await fixture.addPendingFindings(1, of: "h", to: check)
            try await fixture.miscount("h")
            try await fixture.locking("g") {
                try await fixture.store.advanceCheck()
                #expect(try await fixture.store.group("h").tasks[.succeeded] == 0)
            }
            for _ in 0..<2 { try await fixture.store.advanceCheck() }
            let record = try await fixture.store.check(check)
            #expect(record.repaired == 202 && record.found == 0)
            try await fixture.check()
        }
    }

    @Test func aCheckThatIsStoppedRepairsNothingMore() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(1))
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: true, sinks: [])
            try await fixture.addPendingFindings(1, of: "g", to: check)
            #expect(try await fixture.store.check(check).repaired == 1)
            try await fixture.pool.withTransaction { connection in
                // A repair that is under way, and comes to nothing.
                _ = try await connection.query("SELECT serial FROM check_findings FOR UPDATE")
                try await fixture.store.stopCheck(check)
            }
            #expect(try await fixture.findings(of: check).map(\.outcome) == [.found])
            let record = try await fixture.store.check(check)
            #expect(record.isStopped && record.found == 1 && record.repaired == 0)
            let serial = try #require(try await fixture.findings(of: check).first?.serial)
            #expect(try await fixture.value("SELECT repair_finding(\(check), \(serial), 100)", as: Bool?.self) == nil)
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
