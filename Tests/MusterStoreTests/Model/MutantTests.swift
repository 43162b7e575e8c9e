import MusterStore
import MusterTestSupport
import Testing

/// Deliberate breakages of the store: a test of the tests, which must catch every one of them.
@Suite struct MutantTests {
    /// A function of the store with a part of it left out or changed.
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
            original: "l.epoch = u.epoch AND l.session_id IS NOT DISTINCT FROM u.session_id", replacement: "true"),
        Mutant(
            name: "progress is taken under any epoch (I1)", function: "report_progress",
            original: "AND l.epoch = s.epoch AND l.session_id IS NOT DISTINCT FROM s.session_id", replacement: ""),
        Mutant(
            name: "the durable offset goes back (I4)", function: "report_progress",
            original: "greatest(l.durable, s.durable)", replacement: "greatest(l.resume, s.durable)"),
        Mutant(
            name: "the last chunk of a plan is forgotten (I3)", function: "report_answer",
            original: "generate_series(l.last, a.size - 1,", replacement: "generate_series(l.last, a.size - 101,"),
        Mutant(
            name: "the lanes to an origin are not counted (I5)", function: "free_lanes",
            original: "(SELECT count(*) FROM lanes_to(o.id))::integer", replacement: "0"),
        Mutant(
            name: "a lane that was taken back counts no more at once (I5)", function: "lanes_to",
            original: "UNION SELECT h.session_id, h.lane FROM holdouts h WHERE h.origin_id = p_origin", replacement: ""),
        Mutant(
            name: "what waits in a lane counts as a death (I12)", function: "heads_lane",
            original: "l.lane = 0 OR", replacement: "true OR"),
        Mutant(
            name: "an old sync is granted leases", function: "share_leases",
            original: "s.sequence = r.sequence AND", replacement: ""),
        Mutant(
            name: "a group that has connections gets the slot that is to spare (I19)", function: "may_take",
            original: "l.group_id = g.id", replacement: "l.group_id < 0"),
        Mutant(
            name: "what a lease that came back has left on disk is forgotten (I13)", function: "return_leases",
            original: "started_at = coalesce(t.started_at, n.since)", replacement: "started_at = t.started_at"),
        Mutant(
            name: "what is being fetched stays on disk when its task is cancelled (I13)", function: "drop_chunks",
            original: "t.started_at IS NULL AND leased_since", replacement: "false AND leased_since"),
        Mutant(
            name: "a group completes without being sealed (I7)", function: "close_groups",
            original: "g.state = 'sealed' AND", replacement: "g.state IN ('open', 'sealed') AND"),
        Mutant(
            name: "a retry keeps the generation (I7)", function: "run_again",
            original: "generation = g.generation + (g.state NOT IN ('open', 'sealed'))::integer,", replacement: ""),
        Mutant(
            name: "a whole file is leased while the session that lost it may put it in place (I8)",
            function: "is_path_disputed",
            original: "OR EXISTS (SELECT 1 FROM holdouts h WHERE h.sink = p_sink AND h.path = p_path)", replacement: ""),
        Mutant(
            name: "a lost lease does not fence its task (I8)", function: "return_leases",
            original: "t.fenced OR p_lost", replacement: "t.fenced"),
        Mutant(
            name: "a cancelled task keeps its leases (I13)", function: "drop_chunks",
            original: "(l.kind <> 'purge' OR t.state <> 'succeeded')",
            replacement: "l.kind = 'purge' AND t.state <> 'succeeded'"),
        Mutant(
            name: "deaths are not counted (I12)", function: "return_leases", original: "l.deaths + 1",
            replacement: "l.deaths"),
        Mutant(
            name: "an installation that is killed is a death (I12)", function: "return_leases",
            original: "OR NOT l.heads OR l.session_id = ANY (p_killed)", replacement: "OR NOT l.heads"),
    ]

    /// Breakages of what involves several sources, budgets and resolvers (range contract, rows 21, 24 and 30).
    static let sourceMutants = [
        Mutant(
            name: "every refusal of a burst halves (row 24)", function: "heed_limit",
            original: "v_is_echo := coalesce(l.epoch <= o.limited_epoch, false)", replacement: "v_is_echo := false"),
        Mutant(
            name: "what an origin refused is forgotten (row 24)", function: "learned_connections",
            original: "SELECT o.learned", replacement: "SELECT NULL::integer"),
        Mutant(
            name: "an origin never gets more again (row 24)", function: "learned_connections", original: "+ (power(",
            replacement: "+ 0 * (power("),
        Mutant(
            name: "the lanes to a mirror are not counted (I5)", function: "shared_turns",
            original: "least(r.room, u.free)", replacement: "r.room"),
        Mutant(
            name: "lanes that a claim has opened stay free (I5)", function: "grant_turn", original: "- v_opened",
            replacement: ""),
        Mutant(
            name: "sources are mixed that nothing tells apart (row 30)", function: "report_answer",
            original: "coalesce(a.etag LIKE '\"%\"', false)", replacement: "true"),
        Mutant(
            name: "a mirror gets chunks of a version that its content is not (row 30)", function: "pull_sources",
            original: "AND s.differs_in IS DISTINCT FROM t.version", replacement: ""),
        Mutant(
            name: "a mirror gets back what it failed at (I12)", function: "pull_chunks",
            original: "AND c.attempts = 0 AND c.moves = 0", replacement: ""),
        Mutant(
            name: "all mirrors together have the tries of one source (I12)", function: "going_round",
            original: "live_sources(t)", replacement: "1"),
        Mutant(
            name: "no mirror takes anything over (row 30)", function: "pull_sources", original: "NOT s.dead",
            replacement: "s.dead"),
        Mutant(
            name: "a resolver is asked twice at once (row 21)", function: "renew_source",
            original: "IF NOT v_is_asked THEN", replacement: "IF true THEN"),
        Mutant(
            name: "a late refusal of the old URL asks again (row 21)", function: "renew_source",
            original: "v_is_echo := coalesce(l.epoch <= s.stale_epoch, false)",
            replacement: "v_is_echo := false"),
        Mutant(
            name: "nobody goes on after the resolver's answer (row 21)", function: "report_resolved",
            original: "CASE WHEN status = 'waiting' THEN 'ready' ELSE status END", replacement: "status"),
        Mutant(
            name: "an old content version stays on disk (row 6)", function: "start_over",
            original: "IF t.started_at IS NOT NULL THEN", replacement: "IF false THEN"),
    ]

    /// Breakages of verbs that interrupt a group, and of time-driven changes.
    static let groupMutants = [
        Mutant(
            name: "leftovers are deleted while somebody may still be writing (I13)", function: "purge_status",
            original: "THEN 'parked'", replacement: "THEN 'ready'"),
        Mutant(
            name: "who was told to stop is not waited for (I13)", function: "hold_out",
            original: "l.kind IN ('fetch', 'finalize', 'trial')", replacement: "false"),
        Mutant(
            name: "a session lets go of what it still holds (I13)", function: "sync_session",
            original: "h.sync <= p_settled AND h.epoch <> ALL (p_held_epochs)", replacement: "true"),
        Mutant(
            name: "what a lost lease has left stays once its holder has stopped (I13)", function: "report_contents",
            original: "f.fenced", replacement: "EXISTS (SELECT 1 FROM holdouts h WHERE h.task_id = f.id)"),
        Mutant(
            name: "a pause is forgotten while a file is being put in place", function: "start_over",
            original: "t.desired = 'pause'", replacement: "false"),
        Mutant(
            name: "a reopened group keeps its generation (I7)", function: "reopen_group",
            original: "generation = generation + 1,", replacement: ""),
        Mutant(
            name: "a group completes while it waits for others", function: "close_groups",
            original: "NOT g.held OR", replacement: "true OR"),
        Mutant(
            name: "who waits for a group is not told of its end", function: "close_groups",
            original: "satisfies(g.state, r.condition)", replacement: "false"),
        Mutant(
            name: "groups wait for each other in a circle", function: "set_prerequisites",
            original: "subjects := prerequisite_cycle(p_group, v_wanted)", replacement: "subjects := NULL"),
        Mutant(
            name: "what is recalled is not fenced (I8)", function: "recall_leases", original: "SET fenced = true",
            replacement: "SET fenced = t.fenced"),
        Mutant(
            name: "a deadline spares what is paused", function: "expire_group", original: "'queued', 'paused',",
            replacement: "'queued',"),
        Mutant(
            name: "work is leased while a window is closed", function: "group_may_run",
            original: "is_open(g.window_from, g.window_to, g.window_zone)", replacement: "true"),
    ]

    /// The number of histories to search. The mutants that show most rarely do so once in about 150 histories: a search that fails
    /// by chance is less likely than a broken machine.
    private static let histories = 4_000

    @Test(arguments: mutants + sourceMutants + groupMutants)
    func mutantIsCaught(mutant: Mutant) async throws {
        var random = SeededGenerator.forTest(mutant.name)
        let seeds = (0..<Self.histories).map { _ in random.next() }
        try await StoreFixture.run(policy: History.policy, connections: 2) { fixture in
            try await fixture.apply(mutant)
            for (number, seed) in seeds.enumerated() {
                var history = History(fixture: fixture, seed: seed)
                do {
                    try await history.run()
                } catch is History.Failure {
                    return print("\(mutant.name): found in history \(number + 1) of \(seeds.count)")
                }
            }
            Issue.record("the mutant lives")
        }
    }
}
