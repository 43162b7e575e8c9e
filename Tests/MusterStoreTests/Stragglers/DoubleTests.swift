import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Chunks that a second session fetches too, since their holder would delay the whole group.
@Suite struct DoubleTests {
    /// A file of two chunks after the first, with only 30 bytes missing: too few to give away, few enough to fetch twice.
    private func begin(_ fixture: StoreFixture) async throws -> Straggling {
        var scene = try await Straggling.begin(fixture, durable: [1_000, 970])
        try await scene.slow.done(scene.leases[0])
        try await fixture.run("UPDATE groups SET lease_bytes = 100000, lease_ms = 1000000")
        // The slow worker has reported nothing for a minute.
        try await scene.pass(seconds: 60)
        return scene
    }

    @Test func aDoubleResumesFromTheDurableOffsetAndWins() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            let original = scene.leases[1]
            let double = try await scene.double()
            #expect(double.session == scene.idle.session && double.name.chunk != original.name.chunk)
            #expect(double.kind == .fetch && double.isPlanned)
            #expect(double.url == original.url && double.path == original.path)
            #expect(double.start == 1_100 && double.end == 2_100)
            #expect(double.resume == DurablePrefix(offset: 2_070, crc: 7))
            #expect(try await fixture.value("SELECT doubled_bytes FROM groups", as: Int64.self) == 30)
            try await fixture.check("doubled")
            let held = try #require(try await scene.idle.sync(held: [double.name]))
            #expect(held.lost.isEmpty)

            #expect(try await scene.idle.progress(double, to: 2_080))
            try await fixture.check("a double's bytes count only when it wins")
            #expect(try await scene.idle.done([double]) == 1)
            try await fixture.check("won")
            #expect(try await scene.isFenced(), "the holder may still be writing (I8)")
            #expect(try await scene.holdouts() == [scene.slow.session.rawValue])
            let renewed = try #require(try await scene.slow.sync(held: [original.name]))
            #expect(renewed.lost == [original.name])
            try await scene.slow.done(original)
            try await fixture.check("too late")
            let finalize = try #require(try await scene.idle.claim().first)
            #expect(finalize.kind == .finalize && finalize.isFenced && finalize.chunks.last?.range.end == 2_100)
            try await scene.idle.finish(finalize, size: 2_100)
            try await scene.finish()
        }
    }

    @Test func theHolderMayWinAfterAll() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            let double = try await scene.double()
            try await scene.slow.done(scene.leases[1])
            try await fixture.check("won")
            #expect(try await scene.isFenced())
            #expect(try await scene.holdouts() == [scene.idle.session.rawValue])
            #expect(try await scene.idle.done([double]) == 0)
            #expect(try await !scene.idle.progress(double, to: 2_090))
            let renewed = try #require(try await scene.idle.sync(held: [double.name]))
            #expect(renewed.lost == [double.name])
            try await scene.finish()
        }
    }

    @Test func holderAndDoubleDoneAtOnceCountAsOneChunk() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            let double = try await scene.double()
            let reports = [(scene.slow, scene.leases[1]), (scene.idle, double), (scene.idle, double)].map {
                LeaseReport.Done(session: $0.0.session, lease: $0.1.name, crc: 7)
            }
            try await scene.store.report(done: reports)
            try await fixture.check()
            try await scene.store.report(done: reports)
            try await scene.finish()
        }
    }

    @Test func aDoubleTakesOverFromALostHolder() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            let double = try await scene.double()
            #expect(try await scene.idle.progress(double, to: 2_090))
            #expect(try await fixture.expire(scene.slow.session).leases == 1)
            try await fixture.check("the double is the chunk now")
            #expect(try await fixture.chunks().isEmpty)
            #expect(try await scene.isFenced())
            #expect(try await scene.idle.progress(double, to: 2_095))
            try await fixture.check("its bytes count")
            try await scene.idle.done(double)
            try await scene.finish()
        }
    }

    @Test func aDoubleThatIsBehindIsDroppedSoThatNoDurableByteIsLost() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            let double = try await scene.double()
            #expect(try await scene.slow.progress(scene.leases[1], to: 2_090))
            try await scene.slow.release(scene.leases[1], at: 2_095)
            try await fixture.check()
            #expect(try await !scene.idle.progress(double, to: 2_096))
            #expect(try await fixture.value("SELECT resume FROM ready_chunks", as: Int64.self) == 2_095)
            #expect(try await scene.isFenced())
            try await scene.finish()
        }
    }

    @Test func aDoubleThatEndsLeavesTheHolderAlone() async throws {
        for ending in 0..<5 {
            try await StoreFixture.run { fixture in
                var scene = try await begin(fixture)
                let double = try await scene.double()
                switch ending {
                case 0: try await scene.idle.release(double, at: 2_080)
                case 1: try await scene.idle.fail(double, .notFound, at: 2_075, status: 404)
                case 2: try await scene.idle.restart(double)
                case 3: try await scene.idle.sync(settled: scene.idle.sequence)
                default: try await fixture.expire(scene.idle.session)
                }
                // A restarted lease is no longer held, and the next sync says so.
                if ending == 2 { try await scene.idle.sync(settled: scene.idle.sequence) }
                try await fixture.check("ending \(ending)")
                #expect(try await fixture.value("SELECT count(*) FROM leases", as: Int64.self) == 1)
                #expect(try await scene.isFenced() == (ending == 4), "a helper that stopped writes no more")
                #expect(try await scene.idle.help().doubles.isEmpty, "once is enough")
                #expect(try await scene.slow.progress(scene.leases[1], to: 2_080))
                try await scene.slow.done(scene.leases[1])
                try await scene.finish()
            }
        }
    }

    @Test func aRefusalOfADoubleLimitsItsOrigin() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            let double = try await scene.double()
            try await scene.idle.fail(double, .httpStatus(429), retryAfter: 100, status: 429)
            try await fixture.check()
            let isParked: Bool = try await fixture.value("SELECT not_before > statement_timestamp() FROM origins")
            #expect(isParked)
            #expect(try await fixture.value("SELECT learned FROM origins", as: Int32.self) == 8)
            #expect(try await fixture.outcomes() == ["returned"])
            #expect(try await fixture.value("SELECT attempts FROM tasks", as: Int32.self) == 0)
        }
    }

    @Test func aHolderWithADoubleFailsAsWithout() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            let double = try await scene.double()
            #expect(try await scene.idle.progress(double, to: 2_090))
            try await scene.slow.fail(scene.leases[1], .network, at: 2_075)
            try await fixture.check()
            #expect(try await !scene.idle.progress(double, to: 2_095))
            #expect(try await fixture.outcomes() == ["retry"])
            #expect(try await scene.isFenced())
            #expect(try await fixture.value("SELECT resume FROM ready_chunks", as: Int64.self) == 2_075)
            try await scene.finish()
        }
    }

    @Test func endOfAChunkEndsItsDouble() async throws {
        for ending in 0..<6 {
            try await StoreFixture.run { fixture in
                var scene = try await begin(fixture)
                let double = try await scene.double()
                let store = scene.store
                switch ending {
                case 0: _ = try await store.apply(.pause, to: "g", keys: nil)
                case 1: _ = try await store.apply(.cancel, to: "g", keys: nil)
                case 2: try await scene.slow.fail(scene.leases[1], .changed)
                case 3: try await store.remove("g", keys: nil, deletingFiles: false)
                case 4:
                    try await fixture.setWindow(of: "g", isOpen: false)
                    _ = try await store.sweepGroups()
                default: #expect(try await scene.slow.shrink(scene.leases[1], to: 2_090) == .agreed)
                }
                try await fixture.check("ending \(ending)")
                #expect(try await !scene.idle.progress(double, to: 2_090))
                let doubles: Int64 = try await fixture.value("SELECT count(*) FROM leases WHERE kind = 'double'")
                #expect(doubles == 0)
                // None of the task's files is deleted while the helper may be writing (I13).
                #expect(try await scene.holdouts().contains(scene.idle.session.rawValue))
                switch ending {
                case 0: _ = try await store.apply(.resume, to: "g", keys: nil)
                case 4: try await fixture.setWindow(of: "g", isOpen: true)
                case 1, 3: return
                default: break
                }
                try await scene.finish()
            }
        }
    }

    @Test func bytesFetchedTwiceStayWithinTheGroupsAllowance() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [970, 970, 970])
            try await scene.pass(seconds: 60)
            // 3,100 bytes: 62 may be wasted, which is enough for two doubles.
            #expect(try await scene.idle.help(8).doubles.count == 2)
            #expect(try await scene.idle.help(8).doubles.isEmpty)
            #expect(try await fixture.value("SELECT doubled_bytes FROM groups", as: Int64.self) == 60)
            try await fixture.check()
            try await scene.finish()
        }
    }

    @Test func aHolderThatDoesNotAnswerIsDoubledAfterAWhile() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [1_000, 1_000, 950])
            try await scene.pass(seconds: 60)
            try await scene.slow.done(scene.leases[0])
            try await scene.slow.done(scene.leases[1])
            try await fixture.run("UPDATE groups SET lease_bytes = 100000, lease_ms = 1000000")
            #expect(try await scene.idle.help().asked.count == 1)
            #expect(try await scene.idle.help().doubles.isEmpty)
            try await scene.pass(seconds: 6)
            _ = try await scene.double()
            try await fixture.check()
            #expect(try await scene.slow.shrink(scene.leases[2], to: 3_060) == .agreed, "the holder answers after all")
            try await scene.finish()
        }
    }

    @Test func noWorkerDoublesItsOwnChunk() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            #expect(try await scene.slow.help().doubles.isEmpty)
            // Nor under another session of the same worker (F16).
            var again = try await fixture.makeWorker("slow")
            #expect(try await again.help().doubles.isEmpty)
            _ = try await scene.double()
            var third = try await fixture.makeWorker("third")
            #expect(try await third.help(8).doubles.isEmpty, "two are enough")
        }
    }

    @Test func doublesCountInEveryCap() async throws {
        for cap in ["UPDATE origins SET max_connections = 1", "UPDATE groups SET max_connections = 1"] {
            try await StoreFixture.run { fixture in
                var scene = try await begin(fixture)
                try await fixture.run(SQL(unsafeRaw: cap))
                #expect(try await scene.idle.help().doubles.isEmpty)
                try await fixture.run(SQL(unsafeRaw: cap.replacing("= 1", with: "= 2")))
                _ = try await scene.double()
                try await fixture.check()
                _ = try await fixture.add([Wanted("more")], to: "g", reopening: true)
                #expect(try await scene.idle.claim(8).isEmpty)
                try await fixture.check()
            }
        }
    }

    @Test func aDoubleUnderAByteBudgetHasAShareOfIt() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            try await fixture.run("UPDATE groups SET bytes_per_second = 1000")
            let double = try await scene.double()
            #expect(double.isLimited)
            #expect(try await scene.store.budgetShares(of: scene.idle.session).map(\.budget) == ["group:g"])
            try await fixture.check()
        }
    }

    @Test func anExplanationNamesBothHolders() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await begin(fixture)
            _ = try await scene.double()
            let leases = try await scene.store.explanation(of: "t", in: "g").leases
            #expect(Set(leases.compactMap(\.worker)) == ["slow", "idle"])
            #expect(leases.allSatisfy { $0.kind == .fetch && $0.source != nil })
        }
    }
}

extension TestWorker {
    /// Reports several chunks as done, and returns how many doubles won.
    fileprivate func done(_ leases: [GrantedLease]) async throws -> Int {
        try await store.report(done: leases.map { .init(session: session, lease: $0.name, crc: 7) })
    }
}
