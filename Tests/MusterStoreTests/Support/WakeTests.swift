import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Which wakes the verbs send. Histories find forgotten wakes (`WakeWatch`); these tests cover the verbs that histories don't use.
@Suite struct WakeTests {
    @Test func everyVerbOfAGroupWakesTheSessionsThatItMayConcern() async throws {
        try await StoreFixture.run { fixture in
            let store = fixture.store
            try await fixture.makeGroup("g", Wanted.many(3, size: 90))
            #expect(fixture.wakes.take() == [.work, .events])
            _ = try await store.group("g")
            #expect(fixture.wakes.take() == [])
            for verb in [TaskVerb.pause, .resume, .cancel, .retry] {
                _ = try await store.apply(verb, to: "g", keys: nil)
                #expect(fixture.wakes.take() == [.work, .events], "\(verb)")
            }
            _ = try await store.reopen("g")
            #expect(fixture.wakes.take() == [.work, .events])
            _ = try await fixture.add([Wanted("new")], to: "g")
            #expect(fixture.wakes.take() == [.work, .events])
            _ = try await store.seal("g")
            #expect(fixture.wakes.take().contains(.events))
            try await store.remove("g", keys: nil, deletingFiles: true)
            #expect(fixture.wakes.take() == [.work, .events])
        }
    }

    @Test func sweepsThatFindNothingSendNoWakes() async throws {
        try await StoreFixture.run { fixture in
            _ = fixture.wakes.take()
            _ = try await fixture.store.sweepSessions()
            _ = try await fixture.store.sweepWishes()
            _ = try await fixture.store.sweepGroups()
            _ = try await fixture.store.sweepSlow()
            _ = try await fixture.store.sweepStalled(stall: .seconds(1))
            _ = try await fixture.store.failOverdue()
            _ = try await fixture.store.promoteDueChunks()
            _ = try await fixture.store.releasePurges()
            _ = try await fixture.store.releaseRepeats()
            _ = try await fixture.store.sequenceEvents()
            #expect(fixture.wakes.take() == [])
        }
    }

    @Test func aLargerBudgetOfAnOriginWakesAndASyncWithoutNewsDoesNot() async throws {
        try await StoreFixture.run { fixture in
            _ = try await fixture.store.setOrigin("http://a.test:80", maxConnections: .set(3))
            #expect(fixture.wakes.take() == .work)
            var worker = try await fixture.makeWorker()
            try await worker.sync()
            #expect(fixture.wakes.take() == [], "a sync without news")
        }
    }
}
