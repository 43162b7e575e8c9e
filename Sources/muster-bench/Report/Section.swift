/// What one run of one subject gave.
struct Sample: Sendable, Hashable {
    /// The figure that is compared, in the section's unit.
    var value: Double
    /// Seconds of CPU, of the user and of the system together, by process.
    var cpuSeconds: [String: Double] = [:]
    /// The most memory that a process had resident, in MiB.
    var peakMebibytes: [String: Double] = [:]
    /// Further figures by name, such as bytes of WAL per chunk.
    var facts: [String: Double] = [:]
}

/// All runs of one subject.
struct Row: Sendable, Hashable, Codable {
    /// What the subject is.
    enum Role: String, Sendable, Hashable, Codable {
        /// Muster: what is judged.
        case muster
        /// Muster in its simple case, which the others of its rows are compared with.
        case baseline
        /// Another program that does the same work.
        case peer
        /// The least that the work costs: a bare loop, bare statements.
        case floor
    }

    /// The subject's name.
    var subject: String
    /// What it is.
    var role: Role
    /// The figures of the rounds, in their order: the same index in two rows is the same round.
    var values: [Double]
    /// Medians over the rounds, see ``Sample``.
    var cpuSeconds: [String: Double]
    /// The most of all rounds, see ``Sample``.
    var peakMebibytes: [String: Double]
    /// Medians over the rounds, see ``Sample``.
    var facts: [String: Double]

    /// A row of what the rounds gave.
    init(subject: String, role: Role, samples: [Sample]) {
        self.subject = subject
        self.role = role
        values = samples.map(\.value)
        cpuSeconds = Self.merged(samples.map(\.cpuSeconds)) { Statistics($0).median }
        peakMebibytes = Self.merged(samples.map(\.peakMebibytes)) { Statistics($0).maximum }
        facts = Self.merged(samples.map(\.facts)) { Statistics($0).median }
    }

    /// Who serves the files and who pretends to be workers: no part of what does the work.
    static let bystanders: Set<String> = ["origin", "synthetic workers"]

    /// Seconds of CPU of everything that did the work together; nil when they were not measured.
    var ownCPUSeconds: Double? {
        let own = cpuSeconds.filter { !Self.bystanders.contains($0.key) }
        return own.isEmpty ? nil : own.values.reduce(0, +)
    }

    /// Middle and spread.
    var statistics: Statistics { Statistics(values) }

    private static func merged(
        _ rounds: [[String: Double]], _ pick: ([Double]) -> Double?
    ) -> [String: Double] {
        var values: [String: [Double]] = [:]
        for round in rounds {
            for (name, value) in round { values[name, default: []].append(value) }
        }
        return values.compactMapValues(pick)
    }
}

/// Subjects that were measured in turns, in one run.
struct Section: Sendable, Hashable, Codable {
    /// Which way is better.
    enum Better: String, Sendable, Hashable, Codable {
        /// A throughput.
        case higher
        /// A time.
        case lower
    }

    /// A short name, unique in the report.
    var name: String
    /// What was measured.
    var title: String
    /// The unit of the figures.
    var unit: String
    /// Which way is better.
    var better: Better
    /// The subjects.
    var rows: [Row]
    /// What was left out and why, and what else has to be known.
    var notes: [String]

    /// How much better a row is than another one: 2 is twice as fast. The median of the rounds' ratios, since the machine may change
    /// between rounds; of the medians where the rounds don't correspond.
    func ratio(of row: Row, to other: Row) -> Double? {
        let pairs = row.values.count == other.values.count ? Array(zip(row.values, other.values)) : []
        let medians = row.statistics.median.flatMap { own in other.statistics.median.map { (own, $0) } }
        let compared = pairs.isEmpty ? medians.map { [$0] } ?? [] : pairs
        let ratios = compared.map { own, others in better == .higher ? own / others : others / own }
        return Statistics(ratios.filter(\.isFinite)).median
    }

    /// The rows that a row is compared with: none unless it is judged.
    func comparisons(of row: Row) -> [(other: String, ratio: Double)] {
        guard row.role == .muster else { return [] }
        return rows.filter { $0.role != .muster }.compactMap { other in
            ratio(of: row, to: other).map { (other.subject, $0) }
        }
    }
}
