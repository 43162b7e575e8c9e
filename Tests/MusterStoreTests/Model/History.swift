import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport

/// A random history that the store and its model go through together.
struct History {
    /// What a history is about: chance alone would bring too little of each about.
    enum Theme: CaseIterable {
        /// Many tasks in two groups.
        case many
        /// Very few tasks, so that groups complete and are reopened.
        case few
        /// A few tasks of several sources and chunks, that are refused more than they are told what to do.
        case sources
        /// Three groups of very few tasks, which wait for each other and are told more than is done.
        case groups
    }

    /// Where they parted.
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
    /// How often tasks were added: each time at other paths.
    var additions = 0
    var problems: [String] = []
    /// Every lease ever granted: reports about old ones come late.
    var granted: [GrantedLease] = []
    /// What could be leased, and how many events there were, after the last step.
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

    /// Makes its steps and compares after each of them.
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

    /// The lines that there are more of, as often as there are more.
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

    /// One of the groups.
    mutating func someGroup() -> String {
        switch theme {
        case .many: chance(60) ? "g1" : "g2"
        case .few, .sources: "g1"
        case .groups: ["g1", "g2", "g3"].randomElement(using: &random) ?? "g1"
        }
    }

    /// The keys of some tasks of a group, or none for all of it.
    mutating func someKeys(_ group: String) -> [String]? {
        let keys = (model.groups[group]?.tasks.keys).map { $0.sorted() } ?? []
        guard !keys.isEmpty, chance(60) else { return nil }
        return keys.filter { _ in chance(40) }
    }
}
