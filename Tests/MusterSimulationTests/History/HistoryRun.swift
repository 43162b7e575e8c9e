import Glibc
import MusterTestSupport
import Synchronization

/// Many histories, each on one thread, and as many at once as there are cores: they share nothing.
struct HistoryRun: Sendable {
    /// The themes of a run, in turn: those in which anything may happen come twice.
    private static let themes: [Plan.Theme] = [.calm, .deaths, .trouble, .sleepers, .storm, .sleepers, .storm]

    /// The seeds and themes of the histories.
    let plans: [(seed: UInt64, theme: Plan.Theme)]

    /// What came of a run.
    struct Outcome: Sendable {
        var histories = 0
        /// How often something rare has happened.
        var rare: [String: Int] = [:]
        /// The histories that ended as they should not, and what is wrong with them.
        var failures: [(seed: UInt64, theme: Plan.Theme, problems: [String])] = []

        mutating func add(_ other: Outcome) {
            histories += other.histories
            rare.merge(other.rare, uniquingKeysWith: +)
            failures += other.failures
        }
    }

    /// So many histories of seeds that follow from `random`.
    init(_ count: Int, _ random: inout SeededGenerator) {
        plans = (0..<count).map { (random.next(), Self.themes[$0 % Self.themes.count]) }
    }

    /// Runs the histories. After the tenth failure no further one begins.
    func outcome() async -> Outcome {
        let (next, failures) = (Counter(), Counter())
        return await withTaskGroup(of: Outcome.self) { group in
            for _ in 0..<max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
                group.addTask { self.part(next, failures) }
            }
            return await group.reduce(into: Outcome()) { $0.add($1) }
        }
    }

    /// Runs those of the histories that no other thread has begun.
    private func part(_ next: Counter, _ failures: Counter) -> Outcome {
        var outcome = Outcome()
        while failures.value < 10 {
            let index = next.take()
            guard index < plans.count else { break }
            let (seed, theme) = plans[index]
            let history = SimulatedHistory(Plan(seed: seed, theme: theme))
            let problems = history.run()
            outcome.histories += 1
            outcome.rare.merge(history.rare, uniquingKeysWith: +)
            guard !problems.isEmpty else { continue }
            outcome.failures.append((seed, theme, problems))
            _ = failures.take()
        }
        return outcome
    }

    /// Numbers from 0 on, of which each is taken once.
    private final class Counter: Sendable {
        private let taken = Atomic(0)

        var value: Int { taken.load(ordering: .relaxed) }

        func take() -> Int { taken.add(1, ordering: .relaxed).oldValue }
    }
}
