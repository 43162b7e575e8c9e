import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// How leases of lost or closed sessions come back.
@Suite struct ReturnTests {
    @Test func workOfAnExpiredSessionGoesOnElsewhere() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var first = try await fixture.makeWorker("first")
            let lease = try #require(try await first.claim().first)
            try await first.learn(lease, size: 90)
            try await first.progress(lease, to: 40, crc: 4)
            let swept = try await fixture.expire(first.session)
            #expect(swept.sessions == 1 && swept.leases == 1)
            try await fixture.check()
            #expect(try await first.sync() == nil)
            #expect(try await first.progress(lease, to: 60) == false)
            var second = try await fixture.makeWorker("second")
            let next = try #require(try await second.claim().first)
            #expect(next.resume == DurablePrefix(offset: 40, crc: 4) && next.isFenced && next.version == 1)
            try await fixture.check()
        }
    }

    /// A process that opens another session has given up the one before: its work does not wait for the time to live (I19).
    @Test func workOfASessionThatItsProcessHasGivenUpIsLeasedAtOnce() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var first = try await fixture.makeWorker("w")
            let lease = try #require(try await first.claim().first)
            func open(_ worker: String) async throws -> TestWorker {
                let opening = SessionOpening(
                    worker: worker, version: "1", labels: "{}", slots: 8, sinks: ["sink"], previous: first.session)
                let session = try await fixture.store.openSession(opening, timeToLive: .seconds(3_600)).id
                _ = try await fixture.store.sweepSessions()
                return TestWorker(fixture: fixture, session: session)
            }
            var stranger = try await open("another")
            #expect(try await stranger.claim().isEmpty, "another worker can't end it")
            var second = try await open("w")
            try await fixture.passBackoffs()
            let again = try #require(try await second.claim().first)
            #expect(again.name.chunk == lease.name.chunk && again.isFenced, "the old job may still be writing (I8)")
            #expect(try await first.sync() == nil)
            try await fixture.check()
        }
    }

    /// The process may have slept for longer than its session lived. Another process of the same name is not affected.
    @Test func drainingOutlivesTheExpiryOfASession() async throws {
        try await StoreFixture.run { fixture in
            let first = try await fixture.makeWorker("w")
            try await fixture.store.drain(worker: "w")
            try await fixture.expire(first.session)
            func isDraining(after previous: SessionID?) async throws -> (SessionID, Bool) {
                let session = try await fixture.store.openSession(
                    SessionOpening(
                        worker: "w", version: "1", labels: "{}", slots: 8, sinks: ["sink"], previous: previous),
                    timeToLive: .seconds(3600)
                ).id
                var worker = TestWorker(fixture: fixture, session: session)
                return (session, try #require(try await worker.sync()).isDraining)
            }
            #expect(try await !isDraining(after: nil).1)
            // The answer may be lost, and the session with it.
            #expect(try await isDraining(after: first.session).1)
            let (second, isStillDraining) = try await isDraining(after: first.session)
            #expect(isStillDraining)
            #expect(try await isDraining(after: second).1, "the second session has not ended yet")
        }
    }

    @Test func lostAnswersAreRepairedWithoutAFenceOrADeath() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            // The answer is still under way: its sync is not settled.
            let early = try #require(try await worker.sync(settled: 0))
            #expect(early.repaired == 0)
            let renewed = try #require(try await worker.sync(settled: 1, held: [leases[0].name]))
            #expect(renewed.repaired == 1 && renewed.lost.isEmpty && renewed.isNewest)
            try await fixture.check()
            let again = try await worker.claim(3)
            #expect(again.count == 2 && again.allSatisfy { !$0.isFenced })
            let third = try #require(try await worker.sync(held: leases.map(\.name)))
            #expect(third.lost == [leases[1].name])
            #expect(try await fixture.leases().allSatisfy { $0.deaths == 0 })
            try await fixture.check()
        }
    }

    @Test func lateSyncNeitherRenewsNorRepairs() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var worker = try await fixture.makeWorker()
            _ = try await worker.claim(2)
            try await worker.sync()
            let late = try #require(
                try await fixture.store.renew(
                    SessionRenewal(
                        session: worker.session, sequence: 1, sinkStatus: #"[{"name": "sink", "parked": "storage"}]"#,
                        receivedBytes: 0),
                    settled: 1, held: [], timeToLive: .seconds(1)))
            #expect(!late.isNewest && late.repaired == 0)
            #expect(try await fixture.value("SELECT cardinality(parked) FROM sessions") == Int32(0))
            try await fixture.check()
        }
    }

    @Test func chunkThatKillsItsWorkersIsPoison() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            for death in 1...5 {
                #expect(try await fixture.store.task("t", of: "g").state == .queued)
                var worker = try await fixture.makeWorker("w\(death)")
                #expect(try await worker.claim().count == 1)
                try await fixture.expire(worker.session)
                try await fixture.check()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .poison)
            #expect(try await fixture.store.group("g").state == .failed)
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            var last = try await fixture.makeWorker()
            try await last.finishEverything()
            try await fixture.check()
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    @Test func installationThatIsKilledTwentyTimesIsNoPoison() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup(
                "g", [Wanted("t", size: 90), Wanted("stream", size: 90), Wanted("silent")], isSealed: true)
            for kill in 1...20 {
                var worker = try await fixture.makeWorker("w\(kill)")
                for lease in try await worker.claimWork(3) where lease.path != "silent" {
                    if lease.path == "stream" { try await worker.learn(lease, size: 90, isSplittable: false) }
                    if kill % 4 == 0 { try await worker.progress(lease, to: lease.resume.offset + 1) }
                }
                try await fixture.store.expireAllSessions()
                _ = try await fixture.store.sweepSessions()
                try await fixture.check()
            }
            #expect(try await fixture.store.group("g").tasks[.failed] == 0)
            #expect(try await fixture.readyChunks().allSatisfy { $0.deaths == 0 })
            var last = try await fixture.makeWorker()
            try await last.finishEverything(size: 90)
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    @Test(arguments: [false, true])
    func chunkShrinksBeforeItIsPoison(isPlanned: Bool) async throws {
        var policy = StoreFixture.smallPolicy
        policy.firstChunk = 300_000
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: isPlanned ? 300_000 : nil)], isSealed: true)
            var sizes: [Int64] = []
            while try await fixture.store.task("t", of: "g").state == .queued, sizes.count < 20 {
                var worker = try await fixture.makeWorker("w\(sizes.count)")
                // The first chunk kills its workers; the others are fetched elsewhere, so they are released here.
                let leases = try await worker.claimWork(8)
                for lease in leases where lease.start > 0 { try await worker.release(lease) }
                let lease = try #require(leases.first { $0.start == 0 })
                if isPlanned { try await worker.learn(lease, size: 300_000) }
                sizes.append(try #require(lease.end))
                try await fixture.expire(worker.session)
                try await fixture.check()
            }
            #expect(sizes == [300_000, 300_000, 300_000, 300_000, 300_000, 150_000, 75_000, 65_536])
            #expect(try await fixture.store.task("t", of: "g").failure?.kind == .poison)
        }
    }

    @Test func deathsWithProgressAreNoPoison() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)], isSealed: true)
            for death in 1...8 {
                var worker = try await fixture.makeWorker("w\(death)")
                let lease = try #require(try await worker.claim().first)
                try await worker.progress(lease, to: Int64(death * 10))
                try await fixture.expire(worker.session)
                try await fixture.check()
            }
            #expect(try await fixture.store.task("t", of: "g").state == .queued)
        }
    }

    /// Bytes that are lost with their session disprove poison too, but not for ever (I12).
    @Test func plainGETThatIsAlwaysInterruptedIsPoisonAfterFiftyVersions() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var deaths = 0
            while try await fixture.store.task("t", of: "g").state == .queued, deaths < 100 {
                var worker = try await fixture.makeWorker("w\(deaths)")
                let lease = try #require(try await worker.claimWork().first)
                #expect(lease.version == deaths + 1 || deaths >= 50)
                try await worker.learn(lease, size: 1 << 20, isSplittable: false, etag: nil)
                try await worker.progress(lease, to: 65_536)
                try await fixture.expire(worker.session)
                deaths += 1
            }
            try await fixture.check()
            #expect(deaths == 54)
            #expect(try await fixture.store.task("t", of: "g").failure?.kind == .poison)
        }
    }

    @Test func streamStartsOverWithTheNextVersion() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("expected", size: 500)], isSealed: true)
            var first = try await fixture.makeWorker("first")
            for lease in try await first.claim(2) {
                try await first.learn(lease, size: nil, isSplittable: false)
                try await first.progress(lease, to: 70)
            }
            try await fixture.check()
            try await fixture.expire(first.session)
            try await fixture.check()
            var second = try await fixture.makeWorker("second")
            for lease in try await second.claimWork(2) {
                #expect(lease.version == 2 && lease.resume.offset == 0 && lease.rung == .whole && !lease.isPlanned)
                #expect(!lease.isFenced)
            }
            let group = try await fixture.store.group("g")
            #expect(group.bytesDone == 0 && group.bytesTotal == 500 && group.unknownTasks == 1)
        }
    }

    @Test func streamWithoutAByteKeepsItsVersion() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: nil, isSplittable: false)
            try await worker.release(lease)
            try await fixture.check()
            #expect(try await worker.claim().first?.version == 1)
        }
    }

    @Test func leaseWithoutProgressIsTakenBack() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            #expect(try await fixture.store.sweepStalled(stall: .seconds(3600)).leases == 0)
            try await fixture.stall(leases[0])
            #expect(try await fixture.store.sweepStalled(stall: .seconds(3600)).leases == 1)
            try await fixture.check()
            let renewed = try #require(try await worker.sync(held: leases.map(\.name)))
            #expect(renewed.lost == [leases[0].name])
            #expect(try await worker.claim(5).isEmpty, "the worker may still put the file in place")
            try await worker.letGo(holding: [leases[1]])
            try await fixture.passBackoffs()
            #expect(try await worker.claim(5).first?.isFenced == true)
        }
    }

    @Test func closedSessionGivesEverythingBack() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2) + [Wanted("gone")])
            var worker = try await fixture.makeWorker()
            let held = try await worker.claim(3)
            _ = try await fixture.store.apply(.cancel, to: "g", keys: ["gone"])
            try await worker.letGo(holding: held.filter { $0.path != "gone" })
            #expect(try await worker.claim().first?.kind == .purge)
            try await fixture.store.closeSession(worker.session)
            try await fixture.store.closeSession(worker.session)
            try await fixture.check()
            var second = try await fixture.makeWorker("second")
            let leases = try await second.claim(5)
            #expect(leases.count == 3 && leases.allSatisfy { !$0.isFenced })
            let swept = try await fixture.store.sweepSessions()
            #expect(swept.sessions == 0 && swept.leases == 0)
        }
    }

    /// The process is gone when the coordinator handles its last request.
    @Test func lateSyncDoesNotRenewAnEndedSession() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(1))
            var gone = try await fixture.makeWorker("gone")
            var other = try await fixture.makeWorker("other")
            #expect(try await gone.claim().count == 1)
            try await fixture.store.expireSession(gone.session)
            #expect(try await gone.sync() == nil)
            #expect(try await other.sync() != nil)
            let swept = try await fixture.store.sweepSessions()
            #expect(swept.sessions == 1 && swept.leases == 1)
            try await fixture.check()
        }
    }

    @Test func expiredSessionsAreGracedAndEndedOnesAreNot() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var worker = try await fixture.makeWorker()
            _ = try await worker.claim(2)
            try await fixture.set(.expiry, ago: .seconds(1))
            #expect(try await fixture.store.workers(after: nil, limit: 10).isEmpty)
            try await fixture.store.graceExpiredSessions(timeToLive: .seconds(60))
            #expect(try await fixture.store.sweepSessions().sessions == 0)
            #expect(try await fixture.store.workers(after: nil, limit: 10).map(\.inHand.leases) == [2])
            try await fixture.store.expireAllSessions()
            try await fixture.store.graceExpiredSessions(timeToLive: .seconds(60))
            let swept = try await fixture.store.sweepSessions()
            #expect(swept.sessions == 1 && swept.leases == 2)
            try await fixture.check()
        }
    }
}
