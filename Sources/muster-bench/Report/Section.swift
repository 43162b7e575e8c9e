/// The result of one run of one subject.
struct Sample: Sendable, Hashable {
    /// The figure that is compared, in the section's unit.
    var value: Double
    /// Seconds of CPU in user and system mode together, by process.
    var cpuSeconds: [String: Double] = [:]
    /// The peak of resident memory in MiB, by process.
    var peakMebibytes: [String: Double] = [:]
    /// Further figures by name, such as bytes of WAL per chunk.
    var facts: [String: Double] = [:]
}

/// All runs of one subject.
struct Row: Sendable, Hashable, Codable {
    /// What the subject is.
    enum Role: String, Sendable, Hashable, Codable {
        /// Muster, which is judged.
        case muster
        /// Muster in its simple case, with which the other rows of Muster are compared.
        case baseline
        /// Another program that does the same work.
        case peer
        /// The floor of what the work costs: a bare loop, or bare statements.
        case floor
    }

    /// The subject's name.
    var subject: String
    /// Its role in the comparison.
    var role: Role
    /// The figures of the rounds, in their order: the same index in two rows is the same round.
    var values: [Double]
    /// Medians over the rounds, see ``Sample``.
    var cpuSeconds: [String: Double]
    /// Maxima over the rounds, see ``Sample``.
    var peakMebibytes: [String: Double]
    /// Medians over the rounds, see ``Sample``.
    var facts: [String: Double]

    /// A row from the samples of the rounds.
    init(subject: String, role: Role, samples: [Sample]) {
        self.subject = subject
        self.role = role
        values = samples.map(\.value)
        cpuSeconds = Self.merged(samples.map(\.cpuSeconds)) { Statistics($0).median }
        peakMebibytes = Self.merged(samples.map(\.peakMebibytes)) { Statistics($0).maximum }
        facts = Self.merged(samples.map(\.facts)) { Statistics($0).median }
    }

    /// Processes that serve the files or play workers: they don't count for the subject.
    static let bystanders: Set<String> = ["origin", "synthetic workers"]

    /// Seconds of CPU of all processes that did the subject's work; nil when they were not measured.
    var ownCPUSeconds: Double? {
        let own = cpuSeconds.filter { !Self.bystanders.contains($0.key) }
        return own.isEmpty ? nil : own.values.reduce(0, +)
    }

    /// The statistics of the values.
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
    /// What was left out and why, and further remarks.
    var notes: [String]

    /// How much better a row is than another row: 2 is twice as fast. It is the median of the rounds' ratios, since the machine may change
    /// between rounds, or the ratio of the medians where the rounds don't correspond.
    func ratio(of row: Row, to other: Row) -> Double? {
        let pairs = row.values.count == other.values.count ? Array(zip(row.values, other.values)) : []
        let medians = row.statistics.median.flatMap { own in other.statistics.median.map { (own, $0) } }
        let compared = pairs.isEmpty ? medians.map { [$0] } ?? [] : pairs
        let ratios = compared.map { own, others in better == .higher ? own / others : others / own }
        return Statistics(ratios.filter(\.isFinite)).median
    }

    /// The rows that a row is compared with; none unless the row is Muster's.
    func comparisons(of row: Row) -> [(other: String, ratio: Double)] {
        guard row.role == .muster else { return [] }
        return rows.filter { $0.role != .muster }.compactMap { other in
            ratio(of: row, to: other).map { (other.subject, $0) }
        }
    }
}
