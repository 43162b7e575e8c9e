import MusterCore
import MusterStore
import Testing

/// How a check goes through a sink, and when what a worker saw counts (adr/0048).
@Suite struct CheckTests {
    /// A group with two finished files `a` and `b`, and the first of three chunks of `c`.
    private static func fill(_ fixture: StoreFixture, _ worker: inout TestWorker) async throws {
        try await fixture.makeGroup("g", [Wanted("a", size: 90), Wanted("b", size: 90), Wanted("c")])
        for lease in try await worker.claim(3) {
            if lease.expectedSize == 90 {
                try await worker.finish(lease, size: 90)
            } else {
                try await worker.learn(lease, size: 250)
                try await worker.done(lease)
            }
        }
    }

    @Test func aWalkGoesThroughFilesPartsAndNames() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await Self.fill(fixture, &worker)
            let unfinished = try #require(try await fixture.tasks().last?.id)
            #expect(try await worker.page() == nil)
            let check = try await fixture.store.beginCheck(isDeep: true, repairs: false, sinks: [])

            let files = try #require(try await worker.page())
            #expect(files.kind == .files && files.isDeep && files.sink == "sink")
            #expect(files.files?.map(\.path) == ["a", "b"] && files.files?.map(\.size) == [90, 90])
            let parts = try #require(try await worker.saw(files))
            #expect(parts.kind == .parts)
            #expect(parts.parts == [CheckedPart(task: TaskID(unfinished), version: 1, bytes: 100, path: "c")])
            let names = try #require(try await worker.saw(parts))
            #expect(names.kind == .names && names.after == "")
            let more = try #require(try await worker.saw(names) { $0.last = "7.1.part" })
            #expect(more.kind == .names && more.after == "7.1.part")
            #expect(try await worker.saw(more) == nil)

            #expect(try await fixture.store.check(check).finishedAt == nil, "the rows are still to be looked at")
            try await fixture.lookTwice()
            let record = try await fixture.store.check(check)
            #expect(record.finishedAt != nil && record.areRowsDone && record.found == 0 && record.notes == 0)
            #expect(record.walks.map(\.files) == [2] && record.walks.map(\.parts) == [1])
            #expect(try await fixture.store.runningCheck() == nil)
            try await fixture.check()
        }
    }

    @Test func partOfABegunFileIsLookedAtUnlessItsLastChunkIsLeased() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("c", size: 90)])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim(1).first)
            #expect(try await worker.progress(lease, to: 40))
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: [])
            #expect(try await worker.page()?.kind == .names, "the holder may be putting the file in place")
            try await fixture.store.stopCheck(check)
            try await worker.release(lease)
            _ = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: [])
            let page = try #require(try await worker.page())
            #expect(page.kind == .parts && page.parts?.map(\.bytes) == [40] && page.parts?.map(\.path) == ["c"])
            try await fixture.check()
        }
    }

    @Test func whatWasSeenCountsOnlyIfTheDatabaseSaysTheSameAfterwards() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await Self.fill(fixture, &worker)
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: ["sink"])
            let files = try #require(try await worker.page())
            // Another command removes a task between the page and the report.
            try await fixture.store.remove("g", keys: ["b"], deletingFiles: false)
            let parts = try #require(
                try await worker.saw(files) { report in
                    report.files = files.files?.map { SeenFile($0, .fileMissing, "nothing stands there") }
                })
            #expect(try await fixture.findings(of: check).map(\.subject) == ["a"])
            // A part that is shorter than what was durable is one; a part that grew meanwhile is not.
            let part = try #require(parts.parts?.first)
            try await worker.saw(parts) { $0.parts = [SeenPart(task: part.task, version: part.version, size: 99)] }
            let findings = try await fixture.findings(of: check)
            #expect(findings.map(\.kind) == [.fileMissing, .partShort] && findings.map(\.outcome) == [.found, .found])
            #expect(findings.map(\.group) == ["g", "g"] && findings.map(\.key) == ["a", "c"])
        }
    }

    @Test func aReportOfAnEarlierHolderChangesNothing() async throws {
        try await StoreFixture.run { fixture in
            var first = try await fixture.makeWorker("first")
            try await Self.fill(fixture, &first)
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: [])
            let page = try #require(try await first.page())
            let second = try await fixture.makeWorker("second")
            #expect(try await second.page() == nil, "the first one holds the walk")
            // While a page is under way, it is not given out again.
            let isUnderWay = try await first.saw(page) { $0.isUnderWay = true }
            #expect(isUnderWay?.kind == .goOn && isUnderWay?.name == page.name)
            #expect(try await first.page()?.files == page.files, "an answer that was lost comes again")

            try await fixture.expire(first.session)
            let taken = try #require(try await second.page())
            #expect(taken.files == page.files && taken.epoch > page.epoch && taken.step == page.step)
            let late = try await first.saw(page) { report in
                report.files = page.files?.map { SeenFile($0, .fileMissing, "nothing stands there") }
            }
            #expect(late == nil)
            #expect(try await fixture.findings(of: check).isEmpty)
            #expect(try await second.saw(taken)?.kind == .parts)
            // The report comes twice: the second one is about a page that is over.
            #expect(try await second.saw(taken)?.kind == .parts)
            #expect(try await fixture.store.check(check).walks.map(\.files) == [2])
        }
    }

    @Test func namesThatNoRowExplainsAreLookedAtTwice() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await Self.fill(fixture, &worker)
            let unfinished = TaskID(try #require(try await fixture.tasks().last?.id))
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: [])
            let first = try #require(try await worker.page())
            let parts = try #require(try await worker.saw(first))
            let names = try #require(try await worker.saw(parts))
            let stranger = SessionID(9_999)
            let suspects = try #require(
                try await worker.saw(names) { report in
                    report.parts = [
                        SeenPart(task: unfinished, version: 1), SeenPart(task: TaskID(8_888), version: 1),
                        SeenPart(task: TaskID(8_889), version: 2),
                    ]
                    report.sessions = [worker.session, stranger]
                    report.installations = ["3f0c6a52-8d0e-4a3b-9a0f-6f2f0f6f1c11"]
                })
            #expect(suspects.kind == .suspects && suspects.sessions == [stranger])
            #expect(suspects.parts?.map(\.task.rawValue) == [8_888, 8_889])
            // One of them is gone at the second look.
            let end = try await worker.saw(suspects) { report in
                report.parts = [SeenPart(task: TaskID(8_888), version: 1, size: 5)]
                report.sessions = [stranger]
            }
            #expect(end == nil)
            let findings = try await fixture.findings(of: check)
            #expect(findings.map(\.kind) == [.installationForeign, .partUnknown, .sessionUnknown])
            #expect(findings.map(\.subject).dropFirst() == ["parts/8888.1.part", "9999"])
            let record = try await fixture.store.check(check)
            #expect(record.found == 2 && record.notes == 1)
        }
    }

    @Test func rowsCountOnlyIfTwoLooksSeeThem() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            try await fixture.makeGroup("wrong", Wanted.many(1, "w"))
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(1).count == 1)
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: [])
            try await fixture.miscount("wrong")
            try await fixture.deleteRows(of: "sessions")
            try await fixture.store.advanceCheck()
            #expect(try await fixture.findings(of: check).isEmpty, "the first look proves nothing")
            // The sweep takes the lease back.
            _ = try await fixture.store.sweepSessions()
            try await fixture.passLook()
            try await fixture.store.advanceCheck()
            let findings = try await fixture.findings(of: check)
            #expect(findings.map(\.kind) == [.rows] && findings.map(\.subject) == ["I6: group wrong"])
            #expect(try await fixture.store.check(check).found == 1)
        }
    }

    @Test func oneCheckRunsAtATimeAndTheSameOneIsJoined() async throws {
        try await StoreFixture.run { fixture in
            let store = fixture.store
            try await fixture.makeGroup("g", Wanted.many(1))
            await #expect(throws: Store.Refusal.noSuchSink("elsewhere", place: 1)) {
                try await store.beginCheck(isDeep: false, repairs: false, sinks: ["sink", "elsewhere"])
            }
            let check = try await store.beginCheck(isDeep: true, repairs: false, sinks: [])
            #expect(try await store.beginCheck(isDeep: true, repairs: false, sinks: []) == check)
            let refusal = await #expect(throws: Store.Refusal.self) {
                try await store.beginCheck(isDeep: false, repairs: false, sinks: [])
            }
            guard case .checkUnderWay(let other)? = refusal else {
                Issue.record("\(String(describing: refusal))")
                return
            }
            #expect(other?.id == check && other?.isDeep == true && other?.repairs == false && other?.sinks == ["sink"])
            let worker = try await fixture.makeWorker()
            let page = try #require(try await worker.page())
            try await store.stopCheck(check)
            #expect(try await worker.saw(page) == nil)
            let record = try await store.check(check)
            #expect(record.isStopped && record.finishedAt != nil)
            #expect(try await store.beginCheck(isDeep: false, repairs: false, sinks: []) > check)
            await #expect(throws: Store.Refusal.noSuchCheck(0)) { try await store.stopCheck(0) }
            await #expect(throws: Store.Refusal.noSuchCheck(0)) {
                try await store.findings(of: 0, after: 0, limit: 1)
            }
        }
    }

    /// The sink that no worker reaches comes first in the order of the names.
    @Test func aSinkWithoutAWorkerHoldsUpNoOtherSink() async throws {
        try await StoreFixture.run { fixture in
            let gone = try await fixture.makeWorker("gone", sinks: ["a"])
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: [])
            try await fixture.store.stopCheck(check)
            let worker = try await fixture.makeWorker(sinks: ["b"])
            let waiting = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: ["a", "b"])
            try await fixture.expire(gone.session)
            let names = try #require(try await worker.page())
            #expect(names.sink == "b")
            #expect(try await worker.saw(names) == nil)
            try await fixture.lookTwice()
            let record = try await fixture.store.check(waiting)
            #expect(record.walks.map(\.phase) == ["files", "done"] && record.areRowsDone && record.finishedAt == nil)
            #expect(record.walks.map(\.workersReaching) == [0, 1])
            #expect(try await fixture.store.checks().map(\.id) == [waiting, check])
        }
    }

    @Test func walksAreOpenUntilTheyAreDone() async throws {
        try await StoreFixture.run { fixture in
            let worker = try await fixture.makeWorker(sinks: ["a", "b"])
            #expect(try await fixture.store.openWalks().isEmpty)
            let check = try await fixture.store.beginCheck(isDeep: false, repairs: false, sinks: ["a", "b"])
            let names = try #require(try await worker.page())
            #expect(
                try await fixture.store.openWalks() == [
                    OpenWalk(sink: "a", holder: worker.session), OpenWalk(sink: "b", holder: nil),
                ])
            try await worker.saw(names) { $0.isCut = true }
            #expect(try await fixture.store.openWalks() == [OpenWalk(sink: "b", holder: worker.session)])
            #expect(try await fixture.store.check(check).isCut, "a worker could not list all names")
            try await fixture.expire(worker.session)
            #expect(try await fixture.store.openWalks() == [OpenWalk(sink: "b", holder: nil)])
            try await fixture.store.stopCheck(check)
            #expect(try await fixture.store.openWalks().isEmpty)
        }
    }
}
