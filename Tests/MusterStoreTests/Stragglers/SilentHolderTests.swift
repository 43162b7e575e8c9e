import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Chunks whose holders are not heard of, and of which too much is left to be fetched twice.
@Suite struct SilentHolderTests {
    /// Lets time pass in which nothing is heard of the slow worker.
    private func pass(seconds: Int64, _ scene: inout Straggling) async throws {
        try await scene.pass(seconds: seconds)
        try await scene.fixture.run(
            """
            UPDATE sessions SET seen_at = seen_at - \(seconds)::bigint * interval '1 s',
                expires_at = expires_at - \(seconds)::bigint * interval '1 s'
            WHERE worker = 'slow'
            """)
    }

    @Test func whoDoesNotAnswerForTenSecondsLosesWhatHeHolds() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200])
            let lease = scene.leases[0]
            #expect(try await scene.idle.help().asked.count == 1)
            try await pass(seconds: 9, &scene)
            #expect(try await scene.idle.help().taken == 0, "it may be busy")
            try await pass(seconds: 2, &scene)
            let help = try await scene.idle.help()
            #expect(help.taken == 1 && help.doubles.isEmpty && help.asked.isEmpty)
            try await fixture.check("taken")
            #expect(try await scene.isFenced(), "he may be writing still (I8)")
            #expect(try await scene.holdouts() == [scene.slow.session.rawValue])

            let taken = try #require(try await scene.idle.claim().first)
            #expect(taken.start == 100 && taken.end == 1_100 && taken.resume.offset == 300 && taken.isFenced)
            #expect(taken.name.epoch > lease.name.epoch)
            // He wakes up.
            #expect(try await !scene.slow.progress(lease, to: 900), "an old epoch (I1)")
            #expect(try await scene.slow.shrink(lease, to: 900) == .lost)
            let renewed = try #require(try await scene.slow.sync(held: [lease.name]))
            #expect(renewed.lost == [lease.name])
            try await scene.idle.done(taken)
            try await scene.finish()
        }
    }

    @Test func whoIsHeardOfKeepsWhatHeHolds() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200])
            #expect(try await scene.idle.help().asked.count == 1)
            // A program of before does not answer, but syncs.
            try await pass(seconds: 60, &scene)
            try await scene.slow.sync(held: scene.leases.map(\.name))
            #expect(try await scene.idle.help().taken == 0)
            try await scene.finish()
        }
    }

    @Test func whoWasNotAskedIsSilentWhenHalfOfHisSessionIsOver() async throws {
        try await StoreFixture.run { fixture in
            // 30 bytes are left, too few to be given away, and the group may waste 22.
            var scene = try await Straggling.begin(fixture, durable: [970])
            try await pass(seconds: 1_790, &scene)
            #expect(try await scene.idle.help().taken == 0, "he may sync every 20 minutes")
            try await pass(seconds: 20, &scene)
            #expect(try await scene.idle.help().taken == 1)
            try await fixture.check("taken")
            #expect(try await scene.idle.claim().first?.resume.offset == 1_070)
            try await scene.finish()
        }
    }

    @Test func whatMayBeFetchedTwiceIsNotTakenAway() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [1_000, 970])
            try await scene.slow.done(scene.leases[0])
            try await fixture.run("UPDATE groups SET lease_bytes = 100000, lease_ms = 1000000")
            try await pass(seconds: 1_900, &scene)
            let help = try await scene.idle.help()
            #expect(help.doubles.count == 1 && help.taken == 0)
            try await pass(seconds: 1_000, &scene)
            #expect(try await scene.idle.help().taken == 0, "somebody is at it already")
            try await scene.finish()
        }
    }

    @Test func noChunkGoesRoundForEver() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200])
            for turn in 0..<4 {
                try await pass(seconds: 60, &scene)
                #expect(try await scene.idle.help().asked.count == 1)
                try await pass(seconds: 11, &scene)
                let taken = try await scene.idle.help().taken
                #expect(taken == (turn < 3 ? 1 : 0), "turn \(turn)")
                guard taken == 1 else { break }
                // The slow one comes round, and gets it again.
                #expect(try await scene.slow.claim().count == 1)
            }
            try await fixture.check()
            try await scene.finish()
        }
    }

    /// The silent holder may still be using its connection.
    @Test func noChunkIsTakenWhereItsTakerHasNoConnection() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [200], maxConnections: 2)
            #expect(try await scene.idle.help().asked.count == 1)
            try await pass(seconds: 11, &scene)
            #expect(try await scene.slow.help().taken == 0, "nobody takes it from himself")
            try await pass(seconds: 1_900, &scene)
            try await fixture.run("UPDATE groups SET max_connections = 1")
            #expect(try await scene.idle.help().taken == 0)
            try await fixture.run("UPDATE groups SET max_connections = 2")
            try await pass(seconds: 2, &scene)
            #expect(try await scene.idle.help().taken == 1)
            #expect(try await scene.idle.claim().count == 1)
            try await fixture.check()
        }
    }

    /// A coordinator that owns its fleet ends all sessions when it starts: a new one that is idle before they are swept takes over at once.
    @Test func holdersWhoseSessionsWereEndedAreSilent() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Straggling.begin(fixture, durable: [970])
            try await scene.pass(seconds: 1_800)
            try await fixture.store.expireAllSessions()
            scene.idle = try await fixture.makeWorker("new")
            try await scene.idle.sync()
            try await fixture.run("UPDATE sessions SET seen_at = seen_at - interval '20 s' WHERE worker = 'slow'")
            #expect(try await scene.idle.help().taken == 1)
            try await fixture.check("taken")
        }
    }
}
