import MusterCore
import MusterStore
import Testing

/// How reports change chunks and tasks.
@Suite struct ReportTests {
    @Test func plannedTaskGoesFromLeaseToFile() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            #expect(try await worker.progress(first, to: 40))
            #expect(try await worker.learn(first, size: 250))
            try await fixture.check()
            #expect(try await fixture.store.group("g").bytesTotal == 250)
            let rest = try await worker.claim(10).sorted { $0.start < $1.start }
            #expect(rest.map(\.start) == [100, 200] && rest.map(\.end) == [200, 250])
            #expect(rest.allSatisfy { $0.isPlanned && $0.representation.size == 250 })
            // A repeated report of what was learned changes nothing.
            #expect(try await worker.learn(first, size: 999))
            for lease in rest + [first] {
                #expect(try await fixture.store.task("t", of: "g").state == .active)
                try await worker.done(lease)
                try await fixture.check()
            }
            #expect(try await fixture.store.task("t", of: "g").state == .finalizing)
            let finalize = try #require(try await worker.claim().first)
            #expect(finalize.chunks.map(\.range.start) == [0, 100, 200] && finalize.end == 250)
            try await worker.finish(finalize, size: 250)
            try await fixture.check()
            let group = try await fixture.store.group("g")
            #expect(group.state == .succeeded && group.bytesDone == 250 && group.tasks[.succeeded] == 1)
            #expect(try await fixture.count(of: "done_chunks") == 0)
        }
    }

    @Test func smallFileIsFinishedInOneLease() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("empty", size: 0)], isSealed: true)
            var worker = try await fixture.makeWorker()
            for lease in try await worker.claim(2) {
                try await worker.finish(lease, size: lease.path == "t" ? 33 : 0)
                try await fixture.check()
            }
            let group = try await fixture.store.group("g")
            #expect(
                group.state == .succeeded && group.bytesDone == 33 && group.bytesTotal == 33 && group.unknownTasks == 0)
        }
    }

    @Test func reportUnderAnOldEpochChangesNothing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 80)], isSealed: true)
            var first = try await fixture.makeWorker("first")
            let old = try #require(try await first.claim().first)
            try await first.learn(old, size: 80)
            try await first.progress(old, to: 10)
            try await fixture.expire(first.session)
            var second = try await fixture.makeWorker("second")
            let new = try #require(try await second.claim().first)
            #expect(new.name.chunk == old.name.chunk && new.name.epoch > old.name.epoch)

            let before = try await StoreText.lines(fixture)
            // By the expired session, and by one that never held the lease.
            for worker in [first, second] {
                #expect(try await worker.progress(old, to: 50) == false)
                #expect(try await worker.learn(old, size: 70) == false)
                try await worker.done(old)
                try await worker.finish(old, size: 80)
                try await worker.release(old, at: 60)
                try await worker.fail(old, .storage)
                try await worker.restart(old)
            }
            // Under the current epoch, but by another session.
            #expect(try await first.progress(new, to: 50) == false)
            try await first.done(new)
            try await first.finish(new, size: 80)
            #expect(try await StoreText.lines(fixture) == before)
            try await fixture.check()
        }
    }

    @Test func repeatedReportsHaveOneEffect() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            let reports: [(GrantedLease) async throws -> Void] = [
                { try await worker.done($0) }, { try await worker.finish($0, size: 80) },
                { try await worker.release($0, at: 20) }, { try await worker.fail($0, .notFound) },
            ]
            for (lease, report) in zip(leases, reports) {
                try await worker.learn(lease, size: 80)
                try await worker.progress(lease, to: 10)
                try await report(lease)
                let before = try await StoreText.lines(fixture)
                try await report(lease)
                #expect(try await StoreText.lines(fixture) == before)
                try await fixture.check()
            }
        }
    }

    @Test func durableOffsetNeverDecreases() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            #expect(try await worker.progress(lease, to: 50, crc: 5))
            #expect(try await worker.progress(lease, to: 20, crc: 2))
            #expect(try await worker.progress(lease, to: 91) == false, "beyond the chunk's end")
            try await fixture.check()
            try await worker.release(lease, at: 30)
            let next = try #require(try await worker.claim().first)
            #expect(next.resume == DurablePrefix(offset: 50, crc: 5))
            #expect(try await fixture.store.group("g").bytesDone == 50)
            try await fixture.check()
        }
    }

    @Test func severalReportsOnOneLeaseInABatchKeepTheFurthestOffset() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            let reports = [30, 70, 50].map { offset in
                LeaseReport.Progress(
                    session: worker.session, lease: lease.name,
                    durable: DurablePrefix(offset: offset, crc: UInt32(offset)))
            }
            #expect(try await fixture.store.report(progress: reports).isEmpty)
            try await fixture.check()
            #expect(try await fixture.store.group("g").bytesDone == 70)
            try await worker.release(lease)
            #expect(try await worker.claim().first?.resume == DurablePrefix(offset: 70, crc: 70))
        }
    }

    @Test(arguments: [1, 99, 100, 101, 200, 201, 1_000])
    func learnedPlanTilesTheFile(size: Int64) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: size)
            try await fixture.check()
            #expect(try await Int64(fixture.tasks()[0].chunksLeft) == 1 + max(0, size - 1) / 100)
        }
    }

    /// Later content is compared with content that had a validator, or was large (row 27): an error page has any small size.
    @Test(
        arguments: [(65_536, nil, nil), (65_536, "\"1\"", 65_536), (65_537, nil, 65_537)] as [(Int64, String?, Int64?)]
    )
    func smallContentWithoutAValidatorIsNotComparedWithTheNext(size: Int64, etag: String?, kept: Int64?) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: size, etag: etag)
            try await worker.restart(first)
            #expect(try await worker.claimWork().first?.earlier?.size == kept)
        }
    }

    /// Small content that broke off counts too, even if it did so before its first byte: it was no error page.
    @Test(arguments: [20_000, 0] as [Int64]) func smallContentThatBreaksOffIsComparedWithTheNext(
        at offset: Int64
    ) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 60_000, isSplittable: false, etag: "W/\"v\"")
            try await worker.fail(first, .network, at: offset, status: 200)
            try await fixture.passChunkWaits()
            let next = try #require(try await worker.claimWork().first)
            #expect(next.version == 2 && next.earlier == EarlierVersion(size: 60_000, etag: "W/\"v\""))
            try await fixture.check()
        }
    }

    /// The earlier version belongs to the task: a mirror is compared with what another source stated.
    @Test func contentOfASourceIsComparedWithItsMirrors() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 60_000, isSplittable: false, etag: "W/\"v\"")
            try await worker.fail(first, .network, at: 20_000, status: 200)
            try await fixture.passBackoffs()
            let next = try #require(try await worker.claimWork().first)
            #expect(next.source != first.source)
            #expect(next.earlier == EarlierVersion(source: first.source, size: 60_000, etag: "W/\"v\""))
            // Smaller content from the mirror is doubted, and the first source is asked again.
            try await worker.fail(next, .network, status: 200)
            try await fixture.passBackoffs()
            let last = try #require(try await worker.claimWork().first)
            #expect(last.source == first.source && last.earlier == next.earlier)
            try await fixture.check()
        }
    }

    /// A source that always breaks off keeps the task in the end. Before that a mirror has a last try, at which smaller content of it is believed.
    @Test func mirrorHasItsLastTryBeforeASourceThatBreaksOffKeepsTheTask() async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 8
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            var turns: [Bool] = []
            while turns.count < 100, turns.last != true, let lease = try await worker.claimWork().first {
                if lease.source == 1 { turns.append(lease.isLastTry) }
                if lease.source == 0, !lease.isPlanned {
                    try await worker.learn(lease, size: 60_000, isSplittable: false, etag: "W/\"v\"")
                }
                try await worker.fail(lease, .network, at: lease.source == 0 ? 20_000 : nil, status: 200, random: 0)
                try await fixture.passBackoffs()
                try await fixture.check()
            }
            #expect(turns.last == true && turns.filter(\.self).count == 1, "\(turns)")
        }
    }

    /// A source that is given up does not come back: its mirror is not measured by it until all tries are used up.
    @Test func contentOfASourceThatIsGivenUpIsNoMeasureForItsMirror() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 60_000, isSplittable: false, etag: "W/\"v\"")
            try await worker.fail(first, .network, at: 20_000, status: 200)
            try await fixture.passBackoffs()
            let mirror = try #require(try await worker.claimWork().first)
            #expect(mirror.source == 1 && mirror.earlier != nil && !mirror.isLastTry)
            try await worker.fail(mirror, .network, status: 200)
            try await fixture.passBackoffs()
            try await worker.fail(try #require(try await worker.claimWork().first), .notFound, status: 404)
            try await fixture.passBackoffs()
            let left = try #require(try await worker.claimWork().first)
            #expect(left.source == 1 && left.isLastTry)
        }
    }

    /// Without a stated size, the number of bytes that arrived is compared.
    @Test(arguments: [(70_000, nil, 70_000), (500, nil, nil), (500, "\"1\"", 500)] as [(Int64, String?, Int64?)])
    func receivedBytesWithoutASizeAreComparedWithTheNext(came: Int64, etag: String?, kept: Int64?) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: nil, isSplittable: false, etag: etag)
            try await worker.fail(first, .network, at: came, status: 200)
            try await fixture.passChunkWaits()
            let next = try #require(try await worker.claimWork().first)
            #expect(next.version == 2 && next.earlier?.size == nil && next.earlier?.bytes == kept)
            try await fixture.check()
        }
    }

    /// The origin reports its limit by error pages. Content that replaces a version which may be such a page is the file, and not a refusal.
    @Test(arguments: [(nil, "startOver", 2), ("\"1\"", "retry", 1)] as [(String?, String, Int32)])
    func fileThatComesAfterAnErrorPageStartsOver(etag: String?, outcome: String, version: Int32) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.refuse(leases[0], 200, isLimit: true)
            try await worker.learn(leases[1], size: 17, isSplittable: false, etag: etag)
            try await worker.fail(leases[1], .changed, status: 200)
            #expect(try await fixture.outcomes().last == outcome)
            #expect(try await fixture.tasks().map(\.version).max() == version)
            try await fixture.check()
        }
    }

    @Test func fileExpectedToBeEmptyIsPlannedByItsRealSize() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 0)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 150)
            try await fixture.check()
            try await worker.done(lease)
            try await worker.finishEverything()
            try await fixture.check()
            #expect(try await fixture.store.group("g").bytesDone == 150)
        }
    }

    @Test func streamOfUnknownSizeEndsWithItsFile() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("expected", size: 700)], isSealed: true)
            var worker = try await fixture.makeWorker()
            for lease in try await worker.claim(2) {
                try await worker.learn(lease, size: nil, isSplittable: false)
                try await fixture.check()
                #expect(try await worker.progress(lease, to: 600))
                try await fixture.check()
                // A chunk without an end can't be done.
                try await worker.done(lease)
                #expect(try await fixture.store.task(lease.path, of: "g").state == .active)
                try await worker.finish(lease, size: 700)
                try await fixture.check()
            }
            let group = try await fixture.store.group("g")
            #expect(group.state == .succeeded && group.bytesDone == 1_400 && group.unknownTasks == 0)
        }
    }

    @Test func fileIsNotFinishedByALeaseOnPartOfIt() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 250)
            try await worker.finish(lease, size: 250)
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").state == .active)
        }
    }

    @Test func batchesMixSessionsAndGroups() async throws {
        try await StoreFixture.run { fixture in
            for name in ["g1", "g2", "g3"] {
                try await fixture.makeGroup(name, Wanted.many(3, "\(name)-", size: 60), isSealed: true)
            }
            var one = try await fixture.makeWorker("one")
            var two = try await fixture.makeWorker("two")
            let leases = try await one.claim(5) + two.claim(4)
            #expect(leases.count == 9)
            let owners = [one, two].map(\.session)
            try await fixture.store.report(
                finished: leases.prefix(6).map {
                    .init(
                        session: $0.session, lease: $0.name, size: 60, digests: "{}", representation: nil,
                        effectiveURL: nil)
                })
            #expect(Set(leases.map(\.session)) == Set(owners))
            try await fixture.check()
            for worker in [one, two] {
                for lease in leases.dropFirst(6) where lease.session == worker.session {
                    try await worker.finish(lease, size: 60)
                }
            }
            try await fixture.check()
            for name in ["g1", "g2", "g3"] { #expect(try await fixture.store.group(name).state == .succeeded) }
        }
    }
}
