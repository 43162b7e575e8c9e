import MusterPostgres
import MusterTestSupport
import Testing

/// Shrinking and taking over in random histories, and breakages that these must find.
@Suite struct StragglerHistoryTests {
    @Test func invariantsHoldAtEveryMomentOfRandomHistories() async throws {
        var random = SeededGenerator.forTest()
        let seeds = (0..<120).map { _ in random.next() }
        let seen = Observed(StragglerHistory.Seen())
        try await StoreFixture.run(policy: StragglerHistory.policy, connections: 2) { fixture in
            // Each moment occurs ten times or more in 30 histories; if chance brings fewer, more histories follow.
            for (number, seed) in seeds.enumerated() where number < 30 || seen.value.least < Self.least {
                var history = StragglerHistory(fixture: fixture, seed: seed)
                try await history.run()
                let more = history.seen
                seen.update { $0.add(more) }
            }
        }
        print("\(seen.value)")
        #expect(seen.value.least >= Self.least, "the mutants need each of these moments: \(seen.value)")
    }

    /// How often each moment has to occur.
    private static let least = 5

    /// A mutant of the code that runs at a moment.
    struct Breakage: Sendable, CustomTestStringConvertible {
        let moment: StragglerHistory.Moment
        let mutant: MutantTests.Mutant

        init(
            _ name: String, in function: String, at moment: StragglerHistory.Moment, _ original: String,
            _ replacement: String
        ) {
            self.moment = moment
            mutant = .init(name: name, function: function, original: original, replacement: replacement)
        }

        var testDescription: String { mutant.name }
    }

    static let breakages = [
        Breakage(
            "a tail is lost (I3)", in: "cut_lease", at: .shrunk, "s.ordinal = l.source;",
            "s.ordinal = l.source AND false;"),
        Breakage(
            "a chunk ends before what is durable (I4)", in: "report_shrunk", at: .shrunkTooFar,
            "OR p_end < l.durable", ""),
        Breakage(
            "there is no fence when a chunk is taken over (I8)", in: "take_from_silent", at: .taken,
            "SET fenced = true", "SET fenced = t.fenced"),
        Breakage(
            "what others have brought goes back (I4)", in: "spare_chunk", at: .kept, "OR l.durable > l.first", ""),
        Breakage(
            "what goes back is counted still (I6)", in: "give_back_chunks", at: .givenBack,
            "chunks_left = chunks_left - v_gone", "chunks_left = chunks_left"),
    ]

    /// How often the moment occurs before the mutant counts as surviving. With many seeds, each mutant was found in a quarter of them.
    private static let chances = 100

    @Test(arguments: breakages)
    func mutantIsCaught(breakage: Breakage) async throws {
        let mutant = breakage.mutant
        let random = SeededGenerator.forTest(mutant.name)
        try await StoreFixture.run(policy: StragglerHistory.policy, connections: 2) { fixture in
            try await fixture.apply(mutant)
            var seeds = random
            var chances = 0
            for number in 1...1_000 where chances < Self.chances {
                var history = StragglerHistory(fixture: fixture, seed: seeds.next())
                var isFound = false
                do {
                    try await history.run()
                } catch is StragglerHistory.Failure {
                    isFound = true
                } catch is PostgresError {
                    // A constraint of the database has caught the mutant.
                    isFound = true
                }
                chances += history.seen[breakage.moment]
                if isFound { return print("\(mutant.name): found in history \(number), at chance \(chances)") }
            }
            Issue.record("the mutant lives, of \(chances) chances to find it")
        }
    }
}
