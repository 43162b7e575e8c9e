import MusterTestSupport
import Testing

/// The store against its model: the same random histories, compared after every step.
@Suite struct ModelTests {
    @Test(arguments: 0..<3)
    func storeDoesWhatItsModelDoes(lane: Int) async throws {
        var random = SeededGenerator.forTest("storeDoesWhatItsModelDoes(\(lane))")
        // The seed of a history that failed, given as MUSTER_TEST_SEED, runs that history first.
        let first = random.seed
        for _ in 0..<lane { _ = random.next() }
        let seeds = (lane == 0 ? [first] : []) + (0..<70).map { _ in random.next() }
        try await StoreFixture.run(policy: History.policy, connections: 2) { fixture in
            for seed in seeds {
                var history = History(fixture: fixture, seed: seed)
                try await history.run(steps: 40)
            }
        }
    }
}
