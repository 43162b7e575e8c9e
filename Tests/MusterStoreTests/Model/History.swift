import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport

@testable import MusterStoreModel

/// A random history that the store and its model go through together.
struct History {
    /// The kind of situations a history concentrates on, since chance alone would produce too few of each.
    enum Theme: CaseIterable {
        /// Many tasks in two groups.
        case many
        /// Very few tasks, so that groups complete and are reopened.
        case few
        /// A few tasks with several sources and chunks, with more refusals than verbs.
        case sources
        /// Three groups of very few tasks, which wait for each other, with more verbs than work.
        case groups
    }

    /// The point at which store and model differ, with the steps that led there.
    struct Failure: Error, CustomStringConvertible {
        let seed: UInt64
        let steps: [String]
        let problems: [String]

        var description: String {
            "history of seed \(seed)\n" + steps.enumerated().map { "  \($0 + 1). \($1)" }.joined(separator: "\n")
                + "\n" + problems.joined(separator: "\n")
        }
    }

    let fixture: StoreFixture
    let seed: UInt64
    var random: SeededGenerator
    var model: StoreModel
    let theme: Theme
    var steps: [String] = []
    /// How often tasks were added: each time at new paths.
    var additions = 0
    var problems: [String] = []
    /// Every lease ever granted: reports about old ones come late.
    var granted: [GrantedLease] = []
    /// The ready chunks and the number of events after the last step.
    var waking = WakeWatch()
    /// Every session ever opened.
    var sessions: [SessionID] = []

    var store: Store { fixture.store }

    init(fixture: StoreFixture, seed: UInt64) {
        self.fixture = fixture
        self.seed = seed
        random = SeededGenerator(seed: seed)
        theme = Theme.allCases.randomElement(using: &random) ?? .many
        model = StoreModel(policy: fixture.policy)
    }

    /// Bounds that a short history reaches.
    static var policy: Store.Policy {
        var policy = StoreFixture.smallPolicy
        policy.connectionsPerOrigin = 4
        policy.leasesPerSession = 6
        policy.deaths = 3
        policy.verbSlice = 1
        return policy
    }

    /// Takes all steps, and compares store and model after each.
    mutating func run() async throws {
        try await openSession()
        try await addTasks()
        try await compare()
        for _ in 0..<(theme == .sources || theme == .groups ? 60 : 40) {
            do {
                try await step()
            } catch let error as PostgresError {
                problems.append("\(error)")
            }
            try await compare()
        }
        try await fixture.wipe()
    }

    /// The lines that occur more often in `lines` than in `others`, as often as they exceed.
    private static func surplus(of lines: [String], over others: [String]) -> [String] {
        var left = Dictionary(others.map { ($0, 1) }, uniquingKeysWith: +)
        return lines.filter { line in
            guard let count = left[line], count > 0 else { return true }
            left[line] = count - 1
            return false
        }
    }

    private mutating func compare() async throws {
        var problems = problems
        problems += try await waking.compare(fixture)
        let shown = try await StoreText.lines(fixture)
        let wanted = model.lines
        if shown != wanted {
            problems += Self.surplus(of: wanted, over: shown).map { "- \($0)" }
            problems += Self.surplus(of: shown, over: wanted).map { "+ \($0)" }
            if problems.isEmpty { problems.append("the same lines in another order") }
        }
        problems += try await Invariants.check(fixture)
        guard problems.isEmpty else { throw Failure(seed: seed, steps: steps, problems: problems) }
    }

    mutating func log(_ step: String) { steps.append(step) }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func expect(_ condition: Bool, _ problem: String) {
        if !condition { problems.append(problem) }
    }

    /// A random group of the theme.
    mutating func someGroup() -> String {
        switch theme {
        case .many: chance(60) ? "g1" : "g2"
        case .few, .sources: "g1"
        case .groups: ["g1", "g2", "g3"].randomElement(using: &random) ?? "g1"
        }
    }

    /// The keys of some of a group's tasks, or nil for all of them.
    mutating func someKeys(_ group: String) -> [String]? {
        let keys = (model.groups[group]?.tasks.keys).map { $0.sorted() } ?? []
        guard !keys.isEmpty, chance(60) else { return nil }
        return keys.filter { _ in chance(40) }
    }
}
