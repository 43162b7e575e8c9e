import MusterAPI
import MusterCore

/// An explanation for people.
enum ExplanationText {
    /// The lines; tables fit `width` if there is one.
    static func lines(_ explanation: ExplanationDocument, width: Int? = nil) -> [String] {
        let task = explanation.task
        let size = task.bytes.total.map { "\(ByteCount(bytes: $0))" } ?? "unknown size"
        var lines = [
            "\(task.key) (\(explanation.group)): \(task.state.rawValue), \(ByteCount(bytes: task.bytes.done)) of \(size)"
                + (task.contentVersion > 1 ? ", content version \(task.contentVersion)" : ""),
            explanation.summary,
        ]
        let advice = task.state == .failed ? task.failure.flatMap { FailureAdvice.text($0) } : nil
        if let advice { lines.append("first: \(advice)") }
        if let next = explanation.next { lines.append((advice == nil ? "next: " : "then: ") + next) }
        // The first wait is what the summary says.
        for wait in explanation.waits.dropFirst() { lines.append("also: \(wait.detail)\(times(wait))") }
        if let wait = explanation.waits.first, !times(wait).isEmpty { lines[1] += times(wait) }
        lines = lines.map { TextWidth.escaped($0) }
        append(&lines, "work", work(explanation.work), width)
        append(&lines, "sources", sources(explanation.sources), width)
        append(&lines, "attempts", attempts(explanation.attempts), width)
        return lines
    }

    /// The last tries of a task in a line each; nothing if there were fewer than two, since the failure tells of a single one.
    static func tries(_ explanation: ExplanationDocument, most: Int) -> [String] {
        guard explanation.attempts.count > 1 else { return [] }
        // A single source is what the failure names.
        let namesSources = Set(explanation.attempts.map(\.source)).count > 1
        let lines = explanation.attempts.suffix(most).map { attempt in
            let source = namesSources ? attempt.source : nil
            let title = attempt.kind.title(status: attempt.status, source: source, detail: "")
            return "  \(attempt.at)  \(title), then \(attempt.outcome.rawValue)"
        }
        let count = explanation.attempts.count
        let shown = lines.count < count ? "; the last \(lines.count)" : ""
        return (["\(count) requests for \(explanation.task.key) failed\(shown):"] + lines).map {
            TextWidth.escaped($0)
        }
    }

    private static func append(_ lines: inout [String], _ heading: String, _ table: Table, _ width: Int?) {
        guard !table.isEmpty else { return }
        lines += ["", "\(heading):"] + table.lines(width: width.map { $0 - 2 }).map { "  \($0)" }
    }

    private static func times(_ wait: ExplanationDocument.Wait) -> String {
        let parts = [wait.since.map { "since \($0)" }, wait.until.map { "until \($0)" }].compactMap { $0 }
        return parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
    }

    /// Who works on it.
    static func work(_ work: [ExplanationDocument.Work]) -> Table {
        var table = Table([
            .name("WORKER"), .text("DOES"), .number("FROM"), .number("TO"), .number("DURABLE"), .text("SINCE"),
            .sentence("SOURCE"),
        ])
        for item in work {
            let durable = ByteCount(bytes: max(0, item.durable - item.start))
            table.add([
                item.worker, item.kind, "\(item.start)", item.end.map(String.init) ?? "-", "\(durable)",
                item.since.description, item.source ?? "-",
            ])
        }
        return table
    }

    /// The sources.
    static func sources(_ sources: [ExplanationDocument.Source]) -> Table {
        var table = Table([
            .text("STATE"), .number("FAILURES"), .number("BYTES"), .number("SPEED"), .text("RESOLVED"),
            .sentence("SOURCE"),
        ])
        for source in sources {
            table.add([
                source.state, "\(source.failures)", "\(ByteCount(bytes: source.bytes))",
                source.bytesPerSecond.map { ProgressSnapshot.rate($0) } ?? "-", source.resolvedAt?.description ?? "-",
                source.url,
            ])
        }
        return table
    }

    /// What was tried.
    static func attempts(_ attempts: [ExplanationDocument.Attempt]) -> Table {
        var table = Table([
            .text("TIME"), .text("KIND"), .number("STATUS"), .text("THEN"), .name("WORKER"), .text("REQUEST"),
            .sentence("SOURCE"), .sentence("DETAIL"),
        ])
        for attempt in attempts {
            table.add([
                attempt.at.description, attempt.kind.rawValue, attempt.status.map(String.init) ?? "-",
                attempt.outcome.rawValue,
                attempt.worker ?? "-", attempt.requestID ?? "-", attempt.source ?? "-", attempt.detail,
            ])
        }
        return table
    }
}
