import MusterAPI
import MusterCore

/// The explanation of a group for people.
enum GroupExplanationText {
    /// The lines, the most important first; they fit on a small terminal. The slowest origin is named among the steps before the end.
    ///
    /// - Parameter failures: failed tasks of the group, all or some of them.
    static func lines(
        _ explanation: GroupExplanationDocument, failures: [TaskDocument] = [], clock: WallClock = .ofThisMachine
    ) -> [String] {
        let clock = WallClock.tellsHours(explanation.summary) ? clock.withZone : clock
        let group = explanation.group
        let snapshot = ProgressSnapshot(group: group)
        var lines = [
            "\(group.name): \(group.state.rawValue), \(snapshot.filesText), \(snapshot.bytesText)", explanation.summary,
        ]
        if let next = explanation.next { lines.append("next: \(next)") }
        // The lines above have said that an ended group has ended, and how.
        if !group.state.isTerminal { lines.append("done: " + estimate(explanation.eta, clock)) }
        lines = lines.map { TextWidth.escaped(clock.sentence($0)) }
        // The summary tells the first wait.
        lines += explanation.waits.dropFirst().map { TextWidth.escaped(sentence($0, clock)) }
        let areAll = Int64(failures.count) >= group.tasks.failed
        lines += FailureAdvice.groupHints(failures, of: group.name, areAll: areAll).map { "hint: \($0)" }
        guard !explanation.criticalPath.isEmpty else { return lines }
        let steps = explanation.criticalPath.enumerated().map {
            "  \($0 + 1). \(TextWidth.escaped(clock.sentence($1)))"
        }
        return lines + ["until the end:"] + steps
    }

    /// `in 2m 5s as things go, by … at the latest: REASON`, with the bounds that are known.
    static func estimate(_ estimate: GroupExplanationDocument.Estimate, _ clock: WallClock) -> String {
        var parts: [String] = []
        if let seconds = estimate.seconds {
            parts.append("in \(DurationNotation.format(.seconds(seconds))) as things go")
        }
        if let earliest = estimate.earliest, !isNear(estimate, clock) {
            parts.append("not before \(clock.text(earliest))")
        }
        if let latest = estimate.latest { parts.append("by \(clock.text(latest)) at the latest") }
        if parts.isEmpty { parts.append("unknown") }
        return parts.joined(separator: ", ") + ": \(estimate.because)"
    }

    /// Whether the earliest end is close to the estimate, as when a rate is used up: then the earliest end adds nothing.
    private static func isNear(_ estimate: GroupExplanationDocument.Estimate, _ clock: WallClock) -> Bool {
        guard let earliest = estimate.earliest, let seconds = estimate.seconds else { return false }
        return .seconds(seconds) - earliest.since(clock.now) <= .seconds(max(1, seconds / 10))
    }

    private static func sentence(_ wait: GroupExplanationDocument.Wait, _ clock: WallClock) -> String {
        let count = wait.tasks == 1 && !wait.more ? "1 task" : "\(wait.tasks)\(wait.more ? "+" : "") tasks"
        return "also: \(clock.sentence(wait.detail)) (\(count)\(wait.until.map { ", until \(clock.text($0))" } ?? ""))"
    }
}
