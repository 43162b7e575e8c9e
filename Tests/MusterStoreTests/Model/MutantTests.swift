import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// Deliberate breakages of the store: a test of the tests, which must catch every one of them.
@Suite struct MutantTests {
    /// A function of the store with something of it left out.
    struct Mutant: Sendable, CustomTestStringConvertible {
        let name: String
        let function: String
        let original: String
        let replacement: String

        var testDescription: String { name }
    }

    static let mutants = [
        Mutant(
            name: "done is taken under any epoch (I1)", function: "report_done",
            original: "l.epoch = u.epoch AND l.session_id = u.session_id", replacement: "true"),
        Mutant(
            name: "progress is taken under any epoch (I1)", function: "report_progress",
            original: "AND l.epoch = s.epoch AND l.session_id = s.session_id", replacement: ""),
        Mutant(
            name: "the durable offset goes back (I4)", function: "report_progress",
            original: "greatest(l.durable, s.durable)", replacement: "greatest(l.resume, s.durable)"),
        Mutant(
            name: "the last chunk of a plan is forgotten (I3)", function: "report_learned",
            original: "generate_series(l.last, p_size - 1,", replacement: "generate_series(l.last, p_size - 101,"),
        Mutant(
            name: "the cap of an origin is not counted (I5)", function: "claim_chunks",
            original: "SELECT v_origin.cap - count(*)", replacement: "SELECT v_origin.cap"),
        Mutant(
            name: "an old sync is granted leases", function: "claim_chunks",
            original: "s.sequence = r.sequence AND", replacement: ""),
        Mutant(
            name: "a lease that comes back is not taken out of its task's count (I6)", function: "return_leases",
            original: "queued = g.queued + n.stops", replacement: "queued = g.queued"),
        Mutant(
            name: "a group completes without being sealed (I7)", function: "close_groups",
            original: "g.state = 'sealed' AND", replacement: "g.state IN ('open', 'sealed') AND"),
        Mutant(
            name: "a retry keeps the generation (I7)", function: "retry_group",
            original: "generation = g.generation + (g.state NOT IN ('open', 'sealed'))::integer,", replacement: ""),
        Mutant(
            name: "a lost lease does not fence its task (I8)", function: "return_leases",
            original: "t.fenced OR p_lost", replacement: "t.fenced"),
        Mutant(
            name: "a cancelled task keeps its leases (I13)", function: "drop_chunks",
            original: "DELETE FROM leases WHERE task_id = ANY (p_tasks);", replacement: ""),
        Mutant(
            name: "deaths are not counted (I12)", function: "return_leases", original: "l.deaths + 1",
            replacement: "l.deaths"),
    ]

    @Test(arguments: mutants)
    func mutantIsCaught(mutant: Mutant) async throws {
        var random = SeededGenerator.forTest(mutant.name)
        let seeds = (0..<400).map { _ in random.next() }
        try await StoreFixture.run(policy: History.policy, connections: 2) { fixture in
            let whole: String = try await fixture.value("SELECT pg_get_functiondef(\(mutant.function)::text::regproc)")
            let mutated: String = try await fixture.value(
                "SELECT replace(\(whole), \(mutant.original), \(mutant.replacement))")
            try #require(mutated != whole, "the mutant is no mutant any more")
            try await fixture.run(SQL(unsafeRaw: mutated))
            for seed in seeds {
                var history = History(fixture: fixture, seed: seed)
                do {
                    try await history.run(steps: 40)
                } catch is History.Failure {
                    return
                }
            }
            Issue.record("the mutant lives")
        }
    }
}
