import MusterAPI
import MusterCore

/// The explanation of a group for people.
enum GroupExplanationText {
    /// The lines; the table fits `width` if there is one.
    ///
    /// - Parameter failures: some of its tasks that have failed.
    static func lines(
        _ explanation: GroupExplanationDocument, failures: [TaskDocument] = [], width: Int? = nil,
        clock: WallClock = .ofThisMachine
    ) -> [String] {
        let group = explanation.group
        let snapshot = ProgressSnapshot(group: group)
        var lines = [
            "\(group.name): \(group.state.rawValue), \(snapshot.filesText), \(snapshot.bytesText)", explanation.summary,
        ]
        if let next = explanation.next { lines.append("next: \(next)") }
        // How and that it ended has been said.
        if !group.state.isTerminal { lines.append("done: " + estimate(explanation.eta, clock)) }
        lines = lines.map { TextWidth.escaped(clock.sentence($0)) }
        let hints = FailureAdvice.groupHints(failures, of: group.name)
        if !hints.isEmpty { lines += ["", "what helps:"] + hints.map { "  \($0)" } }
        if !explanation.waits.isEmpty {
            lines +=
                ["", "waits:"] + waits(explanation.waits, clock).lines(width: width.map { $0 - 2 }).map { "  \($0)" }
        }
        if let origin = explanation.slowestOrigin {
            lines += ["", "slowest origin:", "  " + TextWidth.escaped(sentence(origin))]
        }
        if !explanation.criticalPath.isEmpty {
            let steps = explanation.criticalPath.enumerated().map {
                "  \($0 + 1). \(TextWidth.escaped(clock.sentence($1)))"
            }
            lines += ["", "critical path:"] + steps
        }
        return lines
    }

    /// `in 2m 5s (because …)`, with the bounds that are known.
    static func estimate(_ estimate: GroupExplanationDocument.Estimate, _ clock: WallClock) -> String {
        var parts: [String] = []
        if let seconds = estimate.seconds { parts.append("in \(DurationNotation.format(.seconds(seconds)))") }
        if let earliest = estimate.earliest, !isNear(estimate) { parts.append("not before \(clock.text(earliest))") }
        if let latest = estimate.latest { parts.append("by \(clock.text(latest)) at the latest") }
        if parts.isEmpty { parts.append("nobody can tell") }
        return parts.joined(separator: ", ") + ": \(estimate.because)"
    }

    /// Whether the bounds are as good as one, as where a rate is used up: then the first of them says nothing more.
    private static func isNear(_ estimate: GroupExplanationDocument.Estimate) -> Bool {
        guard let earliest = estimate.earliest, let latest = estimate.latest else { return false }
        return latest.since(earliest) <= .seconds(max(1, (estimate.seconds ?? 0) / 10))
    }

    private static func waits(_ waits: [GroupExplanationDocument.Wait], _ clock: WallClock) -> Table {
        var table = Table([.number("TASKS"), .text("UNTIL"), .sentence("WHY")])
        for wait in waits {
            let count = "\(wait.tasks)\(wait.more ? "+" : "")"
            table.add([count, wait.until.map(clock.text) ?? "-", clock.sentence(wait.detail)])
        }
        return table
    }

    private static func sentence(_ origin: GroupExplanationDocument.SlowestOrigin) -> String {
        let left = origin.bytesLeft.map { ", \(ByteCount(bytes: $0)) left" } ?? ""
        return "\(origin.key): \(ProgressSnapshot.rate(origin.bytesPerSecond)), "
            + "\(origin.leases) of \(origin.allowed) connections\(left)"
    }
}
