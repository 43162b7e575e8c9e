import Glibc
import MusterTestSupport
import Testing

/// Whole histories, each on one thread: the production's worker and lease services with everything around them simulated (adr/0050).
@Suite struct HistoryTests {
    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// How many histories the run has; `deploy/test.sh` asks for many more.
    private static var count: Int { variable("MUSTER_SIMULATION_HISTORIES").flatMap { Int($0) } ?? 280 }

    /// Situations that a run must produce, since otherwise it proves nothing about them.
    private static let rareSituations = [
        "a stale report was refused", "a stale report met a newer lease", "a chunk was resumed",
        "a running chunk was split",
        "the outcome of a commit was unknown", "a fenced file was put in place", "a content version changed",
        "a session expired", "an answer with leases was lost", "a worker was killed", "power was lost",
        "a late write reached no file", "the file of a lost lease was taken",
    ]

    @Test func everyHistoryEndsAsItShouldAndRareSituationsOccur() async {
        var random = SeededGenerator.forTest()
        let clock = ContinuousClock()
        let start = clock.now
        let outcome = await HistoryRun(Self.count, &random).outcome()
        let seconds = (clock.now - start) / .seconds(1)
        let rate = Double(outcome.histories) / seconds
        print("histories: \(outcome.histories)")
        print("seconds: \((seconds * 10).rounded() / 10)")
        print("histories a second: \((rate * 10).rounded() / 10)")
        for situation in Self.rareSituations {
            print("\(situation): \(outcome.rare[situation] ?? 0)")
            #expect(outcome.rare[situation] ?? 0 > 0, "never: \(situation)")
        }
        for (seed, theme, problems) in outcome.failures {
            Issue.record("\(Shrinker.report(Plan(seed: seed, theme: theme), problems))")
        }
    }

    @Test(arguments: Plan.Sabotage.allCases)
    func theOracleSeesABrokenRule(_ sabotage: Plan.Sabotage) {
        var random = SeededGenerator.forTest()
        for number in 0..<2_000 {
            var plan = Plan(seed: random.next(), theme: sabotage.theme)
            plan.sabotage = sabotage
            let problems = SimulatedHistory(plan).run()
            plan.sabotage = nil
            guard problems.isEmpty || !SimulatedHistory(plan).run().isEmpty else {
                return print("\(sabotage): seen in history \(number): \(problems)")
            }
        }
        Issue.record("2000 histories with broken \(sabotage) ended as if nothing were")
    }

    @Test func aFailureIsReducedToTheFaultsThatItNeeds() {
        var plan = Plan(seed: 1, theme: .calm)
        plan.faults = [
            Fault(at: 0, kind: .add(0)), Fault(at: 1, kind: .losePower(away: 1)), Fault(at: 2, kind: .add(1)),
            Fault(at: 3, kind: .failSyncs(1)),
        ]
        let short = Shrinker.shrink(plan) { plan in
            let times = plan.faults.map(\.at)
            return times.contains(1) && times.contains(3) ? ["it fails"] : []
        }
        #expect(short?.plan.faults.map(\.at) == [1, 3])
    }

    /// Dictionaries have one order only where SWIFT_DETERMINISTIC_HASHING is set.
    @Test(.enabled(if: variable("SWIFT_DETERMINISTIC_HASHING") != nil))
    func aHistoryIsRepeatedByItsSeed() {
        var random = SeededGenerator.forTest()
        for _ in 0..<5 {
            let plan = Plan(seed: random.next(), theme: .storm)
            let (first, second) = (SimulatedHistory(plan), SimulatedHistory(plan))
            #expect(first.run() == second.run())
            #expect(first.simulation.turns == second.simulation.turns)
            #expect(first.age == second.age)
        }
    }

    /// `MUSTER_SIMULATION_SEED` repeats a history, whose theme is `MUSTER_SIMULATION_THEME`.
    @Test(.enabled(if: variable("MUSTER_SIMULATION_SEED") != nil)) func theHistoryOfASeed() throws {
        let seed = try #require(Self.variable("MUSTER_SIMULATION_SEED").flatMap { UInt64($0) })
        let theme = Self.variable("MUSTER_SIMULATION_THEME")
        judge(Plan(seed: seed, theme: Plan.Theme.allCases.first { "\($0)" == theme }))
    }

    private func judge(_ plan: Plan) {
        let problems = SimulatedHistory(plan).run()
        if !problems.isEmpty { Issue.record("\(Shrinker.report(plan, problems))") }
    }
}
