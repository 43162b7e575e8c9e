import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Chunks of silent holders, which go to other workers.
@Suite struct SilentHolderTests {
    /// Lets time pass without any report or sync of the slow worker.
    private func pass(seconds: Int64, _ scene: inout Straggling) async throws {
        try await scene.pass(seconds: seconds)
        try await scene.fixture.age(.sync, .expiry, by: .seconds(seconds), of: scene.slow.session.rawValue)
    }

    @Test func aHolderThatIsSilentForTenSecondsLosesItsChunk() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200])
            let lease = scene.leases[0]
            #expect(try await scene.idle.help().asked.count == 1)
            try await pass(seconds: 9, &scene)
            #expect(try await scene.idle.help().taken == 0, "the holder may be busy")
            try await pass(seconds: 2, &scene)
            let help = try await scene.idle.help()
            #expect(help.taken == 1 && help.asked.isEmpty)
            try await fixture.check("taken")
            #expect(try await scene.isFenced(), "the holder may still be writing (I8)")
            #expect(try await scene.fixture.holdouts() == [scene.slow.session.rawValue])

            let taken = try #require(try await scene.idle.claim().first)
            #expect(taken.start == 100 && taken.end == 1_100 && taken.resume.offset == 300 && taken.isFenced)
            #expect(taken.name.epoch > lease.name.epoch)
            // The slow worker wakes up.
            #expect(try await !scene.slow.progress(lease, to: 900), "an old epoch (I1)")
            #expect(try await scene.slow.shrink(lease, to: 900) == .lost)
            let renewed = try #require(try await scene.slow.sync(held: [lease.name]))
            #expect(renewed.lost == [lease.name])
            try await scene.idle.done(taken)
            try await scene.finish()
        }
    }

    @Test func aHolderThatSyncsKeepsItsChunk() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200])
            #expect(try await scene.idle.help().asked.count == 1)
            // An older worker version does not answer shrink requests, but syncs.
            try await pass(seconds: 60, &scene)
            try await scene.slow.sync(held: scene.leases.map(\.name))
            #expect(try await scene.idle.help().taken == 0)
            try await scene.finish()
        }
    }

    @Test func aHolderThatWasNotAskedIsSilentAfterHalfOfItsSessionTTL() async throws {
        try await StoreFixture.run { fixture in
            // 30 bytes are left, too few to be given away.
            var scene = try await Straggling.begin(fixture, durable: [970])
            try await pass(seconds: 1_790, &scene)
            #expect(try await scene.idle.help().taken == 0, "the worker may sync every 20 minutes")
            try await pass(seconds: 20, &scene)
            #expect(try await scene.idle.help().taken == 1)
            try await fixture.check("taken")
            #expect(try await scene.idle.claim().first?.resume.offset == 1_070)
            try await scene.finish()
        }
    }

    /// A worker that was killed and started again has two sessions for a while (F16).
    @Test func aRestartedWorkerTakesOverFromItsOldSession() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [970])
            try await pass(seconds: 1_850, &scene)
            var restarted = try await fixture.makeWorker("slow")
            #expect(try await restarted.help().taken == 1)
            try await fixture.check("taken")
            #expect(try await restarted.claim().first?.resume.offset == 1_070)
            #expect(try await scene.isFenced(), "the old process may still be writing (I8)")
        }
    }

    @Test func noChunkIsTakenAwayForEver() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200])
            for turn in 0..<4 {
                try await pass(seconds: 60, &scene)
                #expect(try await scene.idle.help().asked.count == 1)
                try await pass(seconds: 11, &scene)
                let taken = try await scene.idle.help().taken
                #expect(taken == (turn < 3 ? 1 : 0), "turn \(turn)")
                guard taken == 1 else { break }
                // The slow worker comes back, and is granted the chunk again.
                #expect(try await scene.slow.claim().count == 1)
            }
            try await fixture.check()
            try await scene.finish()
        }
    }

    /// The silent holder may still be using its connection.
    @Test func noChunkIsTakenAwayIfItsTakerHasNoConnection() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200], maxConnections: 2)
            #expect(try await scene.idle.help().asked.count == 1)
            try await pass(seconds: 11, &scene)
            try await pass(seconds: 1_900, &scene)
            try await fixture.capGroups(at: 1)
            #expect(try await scene.idle.help().taken == 0)
            try await fixture.capGroups(at: 2)
            try await pass(seconds: 2, &scene)
            #expect(try await scene.idle.help().taken == 1)
            #expect(try await scene.idle.claim().count == 1)
            try await fixture.check()
        }
    }

    /// A coordinator that owns its fleet ends all sessions when it starts: a new idle session takes over at once, even before they are swept.
    @Test func holdersWhoseSessionsWereEndedAreSilent() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [970])
            try await scene.pass(seconds: 1_800)
            try await fixture.store.expireAllSessions()
            scene.idle = try await fixture.makeWorker("new")
            try await scene.idle.sync()
            try await fixture.age(.sync, by: .seconds(20), of: scene.slow.session.rawValue)
            #expect(try await scene.idle.help().taken == 1)
            try await fixture.check("taken")
        }
    }
}
