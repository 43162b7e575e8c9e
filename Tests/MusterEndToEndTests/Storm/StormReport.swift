import Synchronization

/// What the storm has done and seen, for a report of one page.
final class StormReport: Sendable {
    /// Cases that have to happen now and then, or else nothing was tested (`docs/invariants.md`).
    enum RareCase: String, CaseIterable, Sendable {
        case staleReport = "a stale report was refused"
        case resumed = "a chunk was resumed at its durable offset"
        case split = "a chunk was divided while it ran"
        case lastTwo = "the last tasks of a group finished at once"
        case unknownCommit = "a reply of the database was lost"
        case freshInode = "a file was finished on a fresh inode"
        case versionChanged = "a content version has changed"
    }

    private struct Notes {
        var fired: [StormFault: Int] = [:]
        var recoveries: [StormFault: [Duration]] = [:]
        var reasons: [StormFault: String] = [:]
        var checks: [String: Int] = [:]
        var rare: [RareCase: Int] = [:]
        var facts: [(name: String, value: String)] = []
    }

    private let seed: UInt64
    private let seconds: Int
    private let notes = Mutex(Notes())

    init(seed: UInt64, seconds: Int) {
        self.seed = seed
        self.seconds = seconds
    }

    /// Notes that a fault was fired, so often.
    func fired(_ fault: StormFault, times: Int = 1) { notes.withLock { $0.fired[fault, default: 0] += times } }

    /// Notes how long after the end of a fault a new file was in place.
    func recovered(_ fault: StormFault, after duration: Duration) {
        notes.withLock { $0.recoveries[fault, default: []].append(duration) }
    }

    /// Notes why a fault was not played.
    func passedOver(_ fault: StormFault, _ reason: String) { notes.withLock { $0.reasons[fault] = reason } }

    /// Notes that invariants were checked, such as `I8`, so often.
    func checked(_ invariants: String..., times: Int = 1) {
        notes.withLock { notes in
            for invariant in invariants { notes.checks[invariant, default: 0] += times }
        }
    }

    /// Notes how often a rare case has happened in all.
    func saw(_ rare: RareCase, times: Int) { notes.withLock { $0.rare[rare] = times } }

    /// Adds a line.
    func tell(_ name: String, _ value: String) { notes.withLock { $0.facts.append((name, value)) } }

    /// How often a fault was fired.
    func count(of fault: StormFault) -> Int { notes.withLock { $0.fired[fault] ?? 0 } }
    /// How often an invariant was checked.
    func checks(of invariant: String) -> Int { notes.withLock { $0.checks[invariant] ?? 0 } }
    /// The rare cases that have not happened.
    var missing: [RareCase] { notes.withLock { notes in RareCase.allCases.filter { notes.rare[$0, default: 0] == 0 } } }
    /// The faults that could have been played and were not.
    var unplayed: [StormFault] {
        notes.withLock { notes in
            StormFault.allCases.filter { $0.row.kind != .never && notes.fired[$0] == nil && notes.reasons[$0] == nil }
        }
    }

    /// The page, with lines of at most 80 columns.
    var page: String {
        let notes = notes.withLock { $0 }
        var lines = [
            "Chaos with real processes: \(seconds) s, MUSTER_TEST_SEED=\(seed)", "",
            Self.line("fault", "", "fired", "median", "worst"),
        ]
        for fault in StormFault.allCases {
            let row = fault.row
            let times = (notes.recoveries[fault] ?? []).sorted()
            let median = times.isEmpty ? "" : Self.seconds(times[times.count / 2])
            let fired = notes.fired[fault].map { "\($0)" } ?? "-"
            lines.append(
                Self.line("F\(row.number)", row.title, fired, median, times.last.map(Self.seconds) ?? ""))
            if notes.fired[fault] == nil, let reason = notes.reasons[fault] { lines.append("     (\(reason))") }
        }
        lines += ["", "Recovery: from the end of a fault until a new file is in place."]
        let checks = notes.checks.sorted { (Int($0.key.dropFirst()) ?? 0) < (Int($1.key.dropFirst()) ?? 0) }
        lines.append("Checked, so often:")
        lines += Self.wrapped(checks.map { "\($0.key) \($0.value)" })
        lines += ["", "Rare cases:"]
        lines += RareCase.allCases.map { "  \(Self.padded($0.rawValue, 50))\(notes.rare[$0] ?? 0)" }
        lines.append("")
        lines += notes.facts.map { "\(Self.padded($0.name, 36))\($0.value)" }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func line(
        _ number: String, _ title: String, _ fired: String, _ median: String, _ worst: String
    )
        -> String
    {
        padded(number, 5) + padded(title, 40) + [fired, median, worst].map { right($0, 10) }.joined()
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }

    private static func seconds(_ duration: Duration) -> String {
        let tenths = Int64(duration / .milliseconds(100))
        return "\(tenths / 10).\(tenths % 10) s"
    }

    private static func wrapped(_ words: [String]) -> [String] {
        var lines: [String] = []
        var line = " "
        for word in words {
            if line.count + word.count > 76 {
                lines.append(line)
                line = " "
            }
            line += " \(word),"
        }
        if line.count > 1 { lines.append(String(line.dropLast())) }
        return lines
    }
}
