import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// How much an origin has served, as the store records it.
@Suite struct OriginFlowTests {
    /// A command may end before the last bytes are added up. The next one must not take the origin for busy since then.
    @Test func flowOfAnEarlierRunKeepsItsTime() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("k")])
            try await fixture.run(
                """
                INSERT INTO origin_flow (origin_id, bytes, answers, at)
                SELECT id, 1000, 1, statement_timestamp() - interval '1 min' FROM origins
                """)
            let answers: SQL = "SELECT recent_answers(o) FROM origins o"
            let serves: SQL = "SELECT has_served(id, interval '30 s') FROM origins"
            let served: SQL = "SELECT has_served(id, interval '2 min') FROM origins"
            for isFolded in [false, true] {
                if isFolded {
                    #expect(try await fixture.store.foldOriginRates() == 1)
                }
                #expect(try await fixture.value(answers, as: Double.self) < 0.01)
                #expect(try await fixture.value(serves) == false)
                #expect(try await fixture.value(served) == true)
            }
        }
    }
}
