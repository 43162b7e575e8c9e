import MusterPostgres
import MusterTestSupport
import Testing

/// Shrinking and doubling in random histories, and breakages that these must find.
@Suite struct StragglerHistoryTests {
    @Test func everyMomentOfRandomHistoriesIsInOrder() async throws {
        var random = SeededGenerator.forTest()
        let seeds = (0..<200).map { _ in random.next() }
        let seen = Observed(StragglerHistory.Seen())
        try await StoreFixture.run(policy: StragglerHistory.policy, connections: 2) { fixture in
            // A history says nothing of what did not come about: some more follow until everything has.
            for (number, seed) in seeds.enumerated() where number < 30 || !seen.value.isComplete {
                var history = StragglerHistory(fixture: fixture, seed: seed)
                try await history.run()
                let more = history.seen
                seen.update {
                    $0.shrunk += more.shrunk
                    $0.doubled += more.doubled
                    $0.won += more.won
                    $0.tookOver += more.tookOver
                }
            }
        }
        #expect(seen.value.isComplete, "\(seen.value)")
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
        let seeds = (0..<200).map { _ in random.next() }
        try await StoreFixture.run(policy: StragglerHistory.policy, connections: 2) { fixture in
            let whole: String = try await fixture.value(
                "SELECT pg_get_functiondef(\(mutant.function)::text::regproc)")
            let mutated: String = try await fixture.value(
                "SELECT replace(\(whole), \(mutant.original), \(mutant.replacement))")
            try #require(mutated != whole, "the mutant is no mutant any more")
            try await fixture.run(SQL(unsafeRaw: mutated))
            for seed in seeds {
                var history = StragglerHistory(fixture: fixture, seed: seed)
                do {
                    try await history.run()
                } catch is StragglerHistory.Failure {
                    return
                } catch is PostgresError {
                    // A constraint stood in its way.
                    return
                }
            }
            Issue.record("the mutant lives")
        }
    }
}
