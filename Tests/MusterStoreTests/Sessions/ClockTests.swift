import MusterCore
import MusterStore
import Testing

/// The clock of the database steps back (F11): played by moving what is stored into the future.
@Suite struct ClockTests {
    private static let step = Duration.seconds(3_600)

    @Test func whatWaitsForAMomentFollowsAClockThatWasSetBack() async throws {
        try await StoreFixture.run { fixture in
            let files = ["a", "b", "c"].map { Wanted($0, origins: [$0]) }
            try await fixture.makeGroup("g", files, isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(3).sorted { $0.key < $1.key }
            try await worker.fail(leases[0], .httpStatus(500), status: 500)
            try await worker.fail(leases[1], .httpStatus(503), retryAfter: 30, status: 503)
            try await worker.sync(held: [leases[2].name])
            #expect(try await fixture.store.followClock() == nil, "the clock is right")

            try await fixture.age(
                .expiry, .sync, .grant, .progress, .rest, .chunkWait, by: .zero - Self.step)
            let step = try #require(try await fixture.store.followClock())
            #expect(abs((step - Self.step).components.seconds) <= 60)
            try await fixture.check("followed")
            #expect(try await fixture.store.followClock() == nil, "once is enough")

            for (column, most) in [
                (.sync, 0), (.grant, 0), (.progress, 0), (.expiry, 3_600), (.rest, 40), (.chunkWait, 60),
            ] as [(TimeColumn, Double)] {
                let ahead = try await fixture.secondsAhead(column)
                #expect(ahead <= most, "\(column)")
            }
        }
    }

    /// An operator means the moment that was named.
    @Test func pauseByAnOperatorStaysAsItIs() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a"])])
            var worker = try await fixture.makeWorker()
            try await worker.sync()
            let origin = try #require(try await fixture.store.origins(after: nil, limit: 1).first)
            let until = Timestamp(microseconds: try await fixture.store.now().microseconds + 7_200_000_000)
            _ = try await fixture.store.setOrigin(origin.key, pausedUntil: .set(until))
            try await fixture.age(.expiry, .sync, by: .zero - Self.step)
            #expect(try await fixture.store.followClock() != nil)
            #expect(try await fixture.store.origins(after: nil, limit: 1).first?.pausedUntil == until)
        }
    }
}
