import MusterAPI
import MusterCore

/// The explanation of a task for people.
enum ExplanationText {
    /// How many failed requests are shown on a terminal.
    private static let shownAttempts = 5

    /// The lines; tables fit `width` if there is one.
    static func lines(
        _ explanation: ExplanationDocument, width: Int? = nil, clock: WallClock = .ofThisMachine
    ) -> [String] {
        let task = explanation.task
        let size = task.bytes.total.map { "\(ByteCount(bytes: $0))" } ?? "unknown size"
        var lines = [
            "\(task.key) (\(explanation.group)): \(task.state.rawValue), \(ByteCount(bytes: task.bytes.done)) of \(size)"
                + (task.contentVersion > 1 ? ", content version \(task.contentVersion)" : ""),
            explanation.summary,
        ]
        let advice = task.state == .failed ? task.failure.flatMap { FailureAdvice.advice($0) } : nil
        if let advice { lines.append("first: \(advice.text)") }
        let way = advice.flatMap { FailureAdvice.way($0, group: explanation.group, key: task.key) }
        if let next = way ?? explanation.next { lines.append((advice == nil ? "next: " : "then: ") + next) }
        // The summary tells the first wait.
        for wait in explanation.waits.dropFirst() { lines.append("also: \(wait.detail)\(times(wait, clock))") }
        if let wait = explanation.waits.first, !times(wait, clock).isEmpty {
            let isSentence = lines[1].hasSuffix(".")
            lines[1] =
                (isSentence ? String(lines[1].dropLast()) : lines[1]) + times(wait, clock) + (isSentence ? "." : "")
        }
        lines = lines.map { TextWidth.escaped(clock.sentence($0)) }
        append(&lines, "work", work(explanation.work, clock), width)
        append(&lines, "sources", sources(explanation.sources, clock), width)
        // A terminal shows the last ones; a file, a pipe and JSON have all of them.
        let shown = width == nil ? explanation.attempts[...] : explanation.attempts.suffix(Self.shownAttempts)
        let heading = count(explanation) + (shown.count < explanation.attempts.count ? "; the last \(shown.count)" : "")
        append(&lines, heading, attempts(Array(shown), of: explanation, clock), width)
        return lines
    }

    /// The last tries of a task in a line each; nothing if there were fewer than two, since the failure tells of a single one.
    static func tries(
        _ explanation: ExplanationDocument, most: Int, clock: WallClock = .ofThisMachine
    ) -> [String] {
        guard explanation.attempts.count > 1 else { return [] }
        // The failure names the source if there is only one.
        let namesSources = Set(explanation.attempts.map(\.source)).count > 1
        let lines = explanation.attempts.suffix(most).map { attempt in
            let source = namesSources ? attempt.source : nil
            let text = attempt.kind.text(
                status: attempt.status, source: source, detail: "", isDecided: isDecided(attempt, of: explanation))
            return "  \(clock.text(attempt.at))  \(text), then \(followed(attempt.outcome))"
        }
        let shown = lines.count < explanation.attempts.count ? "; the last \(lines.count)" : ""
        return (["\(explanation.task.key): \(count(explanation))\(shown):"] + lines).map {
            TextWidth.escaped($0)
        }
    }

    /// The number of failed tries, counted as in a list of tasks and in `try 3 of 8`; with the number of failures if there were more of them. The chunks
    /// of a file are tried in parallel, and neither a refusal for too many connections nor a failed look (a request whose bytes are not kept) counts.
    private static func count(_ explanation: ExplanationDocument) -> String {
        let (tries, requests) = (Int(explanation.task.attempts), explanation.attempts.count)
        // The coordinator keeps no more than so many failed requests.
        guard requests > tries, requests < Limits.attemptsKept else {
            return "\(tries) \(tries == 1 ? "try" : "tries") failed"
        }
        let failed = requests == 1 ? "1 failure" : "\(requests) failures"
        guard tries > 0 else { return "\(failed), which \(requests == 1 ? "does" : "do") not count as tries" }
        return "\(failed), which count\(requests == 1 ? "s" : "") as \(tries == 1 ? "one try" : "\(tries) tries")"
    }

    /// What followed a try.
    private static func followed(_ outcome: AttemptOutcome) -> String {
        switch outcome {
        case .retry: "again"
        case .nextSource: "another source"
        case .startOver: "from the beginning"
        case .resolve: "a fresh URL"
        case .returned: "given back"
        case .failed: "given up"
        }
    }

    private static func append(_ lines: inout [String], _ heading: String, _ table: Table, _ width: Int?) {
        guard !table.isEmpty else { return }
        lines += ["", "\(heading):"] + table.lines(width: width.map { $0 - 2 }).map { "  \($0)" }
    }

    private static func times(_ wait: ExplanationDocument.Wait, _ clock: WallClock) -> String {
        let parts = [wait.since.map { "since \(clock.text($0))" }, wait.until.map { "until \(clock.text($0))" }]
            .compactMap { $0 }
        return parts.isEmpty ? "" : ", " + parts.joined(separator: ", ")
    }

    /// The work that workers do on the task now.
    private static func work(_ work: [TaskWork], _ clock: WallClock) -> Table {
        var table = Table([
            .name("WORKER"), .text("DOES"), .number("FROM"), .number("TO"), .number("DURABLE"), .text("SINCE"),
            .sentence("SOURCE"),
        ])
        for item in work {
            let durable = ByteCount(bytes: max(0, item.durable - item.start))
            table.add([
                item.worker, item.kind.rawValue, "\(item.start)", item.end.map(String.init) ?? "-", "\(durable)",
                clock.text(item.since), item.source ?? "-",
            ])
        }
        return table
    }

    /// The table of sources.
    private static func sources(_ sources: [TaskSource], _ clock: WallClock) -> Table {
        var table = Table([
            .text("STATE"), .number("FAILURES"), .number("BYTES"), .number("SPEED"),
            .text("RESOLVED", isOptional: true), .sentence("SOURCE"),
        ])
        for source in sources {
            table.add([
                source.state.rawValue, "\(source.failures)", "\(ByteCount(bytes: source.bytes))",
                source.bytesPerSecond.map { ProgressSnapshot.rate($0) } ?? "-",
                source.resolvedAt.map(clock.text) ?? "-",
                source.url,
            ])
        }
        return table
    }

    /// Whether the answer to a try is final. As long as another try follows, its answer may differ.
    private static func isDecided(
        _ attempt: TaskAttempt, of explanation: ExplanationDocument
    ) -> Bool {
        if attempt.kind == .httpStatus(200), explanation.doubtful == true { return false }
        return attempt.outcome != .retry || explanation.task.state.isTerminal
    }

    /// The table of failed requests.
    private static func attempts(
        _ attempts: [TaskAttempt], of explanation: ExplanationDocument, _ clock: WallClock
    ) -> Table {
        var table = Table([
            .text("TIME"), .text("FAILURE"), .text("THEN"), .name("WORKER"), .text("REQUEST", isOptional: true),
            .sentence("SOURCE", isOptional: true), .sentence("DETAIL"),
        ])
        // A single source is in the table of sources.
        let namesSources = Set(attempts.map(\.source)).count > 1
        for attempt in attempts {
            table.add([
                clock.text(attempt.at),
                attempt.kind.title(
                    status: attempt.status, isDecided: isDecided(attempt, of: explanation), detail: attempt.detail),
                followed(attempt.outcome),
                attempt.worker ?? "-", attempt.requestID ?? "-", (namesSources ? attempt.source : nil) ?? "-",
                attempt.detail,
            ])
        }
        return table
    }
}
