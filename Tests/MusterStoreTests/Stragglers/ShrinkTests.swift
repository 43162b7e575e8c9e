import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Slow holders that give the tails of their chunks away.
@Suite struct ShrinkTests {
    @Test func aSlowHolderGivesItsTailAwaySoThatBothEndTogether() async throws {
        try await StoreFixture.run { fixture in
            // 20 bytes per second against 100: the holder keeps a sixth of the rest.
            var scene = try await Straggling.begin(fixture, durable: [200])
            try await fixture.age(.grant, by: .seconds(-50))
            #expect(try await scene.idle.claim(4).isEmpty)
            let help = try await scene.idle.help(4)
            #expect(help.asked == [scene.slow.session])
            #expect(try await scene.store.shrinkingSessions() == [scene.slow.session])
            // 300 + 800 / 6, rounded up to a multiple of 10. Without news for a minute, no further progress is assumed.
            let wish = try #require(try await scene.wishes().first)
            #expect(wish.lease == scene.leases[0].name && wish.end == 440)
            #expect(try await scene.idle.claim(4).isEmpty, "nothing is given away before the holder has agreed")
            try await fixture.check("asked")

            #expect(try await scene.slow.shrink(scene.leases[0], to: wish.end) == .agreed)
            try await fixture.check("agreed")
            #expect(try await scene.wishes().isEmpty)
            let tail = try #require(try await scene.idle.claim(4).first)
            #expect(tail.start == 440 && tail.end == 1_100 && tail.resume.offset == 440)
            #expect(tail.isPlanned && !tail.isFenced)
            try await scene.slow.done(scene.leases[0])
            #expect(try await fixture.doneChunks().last?.upperBound == 440)
            try await scene.idle.done(tail)
            try await scene.finish()
        }
    }

    @Test func aVerySlowHolderKeepsLessThanAShrinkUnit() async throws {
        var policy = StoreFixture.smallPolicy
        policy.shrinkUnit = 320
        try await StoreFixture.run(policy: policy) { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200])
            try await fixture.age(.grant, by: .seconds(-50))
            #expect(try await scene.idle.help(4).asked == [scene.slow.session])
            // 300 + 800 / 6, rounded up to a multiple of 20.
            #expect(try await scene.wishes().first?.end == 440)
            try await scene.finish()
        }
    }

    @Test func aGroupWhoseLeasesBroughtNothingHasNoSpeedToCompareWith() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [0])
            try await fixture.setLeaseSpeed(0)
            let help = try await scene.idle.help()
            #expect(help.asked.isEmpty)
            try await scene.finish()
        }
    }

    @Test func aHolderThatKeepsItsEndIsNotAskedAgainAtOnce() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200])
            #expect(try await scene.idle.help().asked.count == 1)
            #expect(try await scene.idle.help().asked.isEmpty, "asked already")
            #expect(try await scene.slow.shrink(scene.leases[0], to: 1_100) == .kept)
            #expect(try await scene.wishes().isEmpty)
            #expect(try await scene.idle.help().asked.isEmpty, "the holder has just declined")
            try await scene.pass(seconds: 7)
            #expect(try await scene.idle.help().asked.count == 1)
            #expect(try await scene.slow.shrink(scene.leases[0], to: .max) == .kept)
            try await scene.pass(seconds: 7)
            #expect(try await scene.idle.help().asked.isEmpty, "the pause between requests grows")
            try await scene.finish()
        }
    }

    @Test func repeatedAndLateAnswersChangeNothing() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Straggling.begin(fixture, durable: [200])
            let lease = scene.leases[0]
            #expect(try await scene.slow.shrink(lease, to: 700) == .agreed)
            #expect(try await scene.slow.shrink(lease, to: 700) == .kept)
            #expect(try await scene.slow.shrink(lease, to: 900) == .kept, "a late repetition of an earlier answer")
            #expect(try await scene.slow.shrink(lease, to: 500) == .agreed, "nearer still")
            try await fixture.check()
            #expect(try await fixture.chunks() == ["fetch 500 0 ready 0", "fetch 700 0 ready 0"])
            #expect(try await scene.idle.shrink(lease, to: 400) == .lost, "another session's lease")
            #expect(try await scene.slow.shrink(lease, to: 299) == .kept, "below what is durable (I4)")
            #expect(try await scene.slow.shrink(lease, to: 100) == .kept, "nothing would be left")
            _ = try await scene.store.apply(.pause, to: "g", keys: nil)
            #expect(try await scene.slow.shrink(lease, to: 400) == .lost, "the pause has ended the lease")
            _ = try await scene.store.apply(.resume, to: "g", keys: nil)
            try await scene.finish()
        }
    }

    @Test func aShrunkLeaseThatFailsComesBackWithItsNewEnd() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Straggling.begin(fixture, durable: [200, 300])
            #expect(try await scene.slow.shrink(scene.leases[0], to: 700) == .agreed)
            #expect(try await scene.slow.shrink(scene.leases[1], to: 1_600) == .agreed)
            try await scene.slow.release(scene.leases[0], at: 400)
            try await scene.slow.fail(scene.leases[1], .network, at: 1_500)
            try await fixture.check()
            #expect(
                try await fixture.readyChunks().map { "\($0.first) \($0.last ?? 0) \($0.resume)" }
                    == ["100 700 400", "700 1100 700", "1100 1600 1500", "1600 2100 1600"])
            try await scene.finish()
        }
    }

    @Test func theGroupIsChargedForWhatTheHolderKeeps() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Straggling.begin(fixture, durable: [0])
            try await fixture.charge(1_000_000)
            let (before, provisional) = (try await fixture.served("g"), try await fixture.leases()[0].charged)
            #expect(try await scene.slow.shrink(scene.leases[0], to: 600) == .agreed)
            let (after, charged) = (try await fixture.served("g"), try await fixture.leases()[0].charged)
            #expect(charged == 16_384 && after - before == charged - provisional)
        }
    }

    @Test func noHolderIsAskedThatIsFastOrHasATooSmallTail() async throws {
        // In a minute 1,000 bytes are done at the others' speed; 30 bytes are too few to be worth a third of the time.
        for durable in [[970] as [Int64], [1_000]] {
            try await StoreFixture.run { fixture in
                var scene = try await Straggling.begin(fixture, durable: durable)
                #expect(try await scene.idle.help(4).asked.isEmpty)
                try await scene.finish()
            }
        }
        try await StoreFixture.run { fixture in
            // Ten seconds old, with 900 bytes done: one second is left.
            var scene = try await Straggling.begin(fixture, durable: [900])
            try await fixture.set(.grant, ago: .seconds(10))
            try await fixture.set(.progress, ago: .zero)
            #expect(try await scene.idle.help(4).asked.isEmpty)
            // A lease granted just now has had no time to report progress.
            try await fixture.forgetProgress()
            try await fixture.set(.grant, ago: .seconds(4))
            #expect(try await scene.idle.help(4).asked.isEmpty)
            try await fixture.set(.grant, ago: .seconds(6))
            #expect(try await scene.idle.help(4).asked.count == 1)
        }
    }

    @Test func noHolderIsAskedWhileChunksAreReadyOrNothingMayBeGranted() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200, 200], maxConnections: 3)
            let store = scene.store
            func asked() async throws -> Int { try await scene.idle.help(4).asked.count }

            try await fixture.capGroups(at: 2)
            #expect(try await asked() == 0, "no connection is left for a helper")
            try await fixture.capGroups(at: 3)
            try await fixture.capOrigins(at: 2)
            #expect(try await asked() == 0)
            try await fixture.capOrigins(at: nil)
            try await fixture.restOrigins(for: .seconds(3_600))
            #expect(try await asked() == 0)
            try await fixture.restOrigins(for: nil)
            try await fixture.setWindow(of: "g", isOpen: false)
            #expect(try await asked() == 0)
            try await fixture.setWindow(of: "g", isOpen: true)
            try await fixture.set("tasks", "rung", to: "stream")
            #expect(try await asked() == 0)
            try await fixture.set("tasks", "rung", to: "chunks")
            _ = try await fixture.add([Wanted("more")], to: "g", reopening: true)
            #expect(try await asked() == 0, "chunks that are ready go first")
            _ = try await store.apply(.cancel, to: "g", keys: ["more"])
            #expect(try await asked() == 1, "room for one helper")
            #expect(try await asked() == 0, "the connection is reserved for that helper")
        }
    }

    @Test func asManyHoldersAreAskedAsThereAreIdleSlotsTheSlowestFirst() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [300, 100, 200])
            #expect(try await scene.idle.help(2).asked == [scene.slow.session, scene.slow.session])
            #expect(Set(try await scene.wishes().map(\.lease)) == [scene.leases[1].name, scene.leases[2].name])
            // A session that reaches only another sink is no helper.
            var other = try await fixture.makeWorker("other", sinks: ["elsewhere"])
            #expect(try await other.help(4).asked.isEmpty)
            // Nor is a draining session.
            try await fixture.store.drain(worker: "idle")
            #expect(try await scene.idle.help(4).asked.isEmpty)
        }
    }
}
