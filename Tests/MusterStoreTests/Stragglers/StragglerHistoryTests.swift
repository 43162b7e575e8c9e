import MusterPostgres
import MusterTestSupport
import Testing

/// Shrinking and doubling in random histories, and breakages that these must find.
@Suite struct StragglerHistoryTests {
    @Test func everyMomentOfRandomHistoriesIsInOrder() async throws {
        var random = SeededGenerator.forTest()
        var seen = StragglerHistory.Seen()
        for _ in 0..<12 {
            let seed = random.next()
            seen = try await Self.run(seed: seed, adding: seen)
        }
        print("seen: \(seen)")
        #expect(seen.shrunk > 0 && seen.doubled > 0 && seen.won + seen.tookOver > 0)
    }

    private static func run(seed: UInt64, adding before: StragglerHistory.Seen) async throws -> StragglerHistory.Seen {
        let after = Observed(before)
        try await StoreFixture.run(policy: StragglerHistory.policy, connections: 2) { fixture in
            var history = StragglerHistory(fixture: fixture, seed: seed)
            try await history.run()
            let seen = history.seen
            after.update {
                $0.shrunk += seen.shrunk
                $0.doubled += seen.doubled
                $0.won += seen.won
                $0.tookOver += seen.tookOver
            }
        }
        return after.value
    }

    static let mutants = [
        MutantTests.Mutant(
            name: "a tail is given to nobody (I3)", function: "report_shrunk", original: "s.ordinal = l.source;",
            replacement: "s.ordinal = l.source AND false;"),
        MutantTests.Mutant(
            name: "a shrunk chunk keeps its double (I3)", function: "report_shrunk",
            original: "PERFORM drop_doubles(ARRAY[p_chunk]);", replacement: ""),
        MutantTests.Mutant(
            name: "a chunk ends before what is durable (I4)", function: "report_shrunk",
            original: "OR p_end < l.durable", replacement: ""),
        MutantTests.Mutant(
            name: "nobody is fenced when a double wins (I8)", function: "settle_doubles", original: "SET fenced = true",
            replacement: "SET fenced = fenced"),
        MutantTests.Mutant(
            name: "nobody is fenced when a double loses (I8)", function: "drop_doubles", original: "SET fenced = true",
            replacement: "SET fenced = t.fenced"),
        MutantTests.Mutant(
            name: "what a double has is not counted when it wins (I6)", function: "promote_double",
            original: "g.bytes_done + p_double.durable - p_original.durable", replacement: "g.bytes_done"),
        MutantTests.Mutant(
            name: "a double takes over that is behind (I4)", function: "return_doubles",
            original: "AND d.durable >= o.durable", replacement: ""),
        MutantTests.Mutant(
            name: "a worker races with itself", function: "help_stragglers",
            original: "AND (v_row.remedy = 'shrink' OR s.worker IS DISTINCT FROM v_row.holder)", replacement: ""),
    ]

    @Test(arguments: mutants)
    func mutantIsCaught(mutant: MutantTests.Mutant) async throws {
        var random = SeededGenerator.forTest(mutant.name)
        for _ in 0..<16 {
            let seed = random.next()
            let isCaught = Observed(false)
            try await StoreFixture.run(policy: StragglerHistory.policy, connections: 2) { fixture in
                let whole: String = try await fixture.value(
                    "SELECT pg_get_functiondef(\(mutant.function)::text::regproc)")
                let mutated: String = try await fixture.value(
                    "SELECT replace(\(whole), \(mutant.original), \(mutant.replacement))")
                try #require(mutated != whole, "the mutant is no mutant any more")
                try await fixture.run(SQL(unsafeRaw: mutated))
                var history = StragglerHistory(fixture: fixture, seed: seed)
                do {
                    try await history.run()
                } catch is StragglerHistory.Failure {
                    isCaught.update { $0 = true }
                } catch is PostgresError {
                    // A constraint stood in its way.
                    isCaught.update { $0 = true }
                }
            }
            if isCaught.value { return }
        }
        Issue.record("the mutant lives")
    }
}
