import MusterAPI
import MusterCore
import MusterStore

extension GroupExplanation {
    /// One sentence: what the group waits for above all, or how it ended.
    func summary(_ waits: [GroupExplanationDocument.Wait]) -> String {
        let group = facts.group
        switch group.state {
        case .succeeded:
            guard group.tasks.succeeded > 0 else {
                let why = group.tasks.cancelled > 0 ? ", since its tasks were cancelled" : ""
                return "It has succeeded: it has no files\(why)."
            }
            let files =
                group.tasks.succeeded == 1 ? "its one file stands" : "all of its \(group.tasks.succeeded) files stand"
            let place = "in the sink \"\(group.sink)\""
            guard let doubtful = situation.doubtful else {
                return "It has succeeded: \(files) \(place), whole and verified."
            }
            return "It has succeeded: \(files) \(place); \(doubtful.tasks) of them may be pages in the place of files, "
                + "since nothing tells whether they are the ones."
        case .cancelled: return "It was cancelled; what was unfinished is dropped."
        case .failed:
            let name = ShellWord(group.name)
            // Without more time, a retry would fail in the same way.
            let isLate = group.overdue == true && group.onDeadline == .fail
            let failures = situation.failures.map { failure in
                let reason = failure.kind?.text(
                    status: failure.status, source: nil, detail: failure.detail ?? "", isDecided: true)
                return (key: failure.key, reason: reason ?? "")
            }
            let time = isLate ? "give it more time (muster limit \(name) --deadline 2h), and " : ""
            return
                "It failed: \(group.tasks.failed) of \(group.tasks.total) tasks failed\(Self.named(failures, of: group.tasks.failed)); "
                + "\(time)put them back with what they have: muster retry \(name)"
        case .open, .sealed:
            guard let first = waits.first else { return "It is \(group.state.rawValue)." }
            return first.detail.prefix(1).uppercased() + first.detail.dropFirst() + "."
        }
    }

    /// The most characters of a reason in a sentence that names several.
    private static let reasonLength = 160

    /// `: a (404 Not Found), b (…) and 3 more`; nothing if none is known.
    static func named(_ failures: [(key: String, reason: String)], of tasks: Int64) -> String {
        guard !failures.isEmpty else { return "" }
        let named = failures.map { failure in
            let reason = failure.reason
            return "\(failure.key) (\(reason.prefix(reasonLength))\(reason.count > reasonLength ? "…" : ""))"
        }
        let rest = tasks - Int64(named.count)
        return ": \(named.joined(separator: ", "))\(rest > 0 ? " and \(rest) more" : "")"
    }

    /// One sentence: what happens next, and when; and what happens at its deadline.
    func next(_ waits: [GroupExplanationDocument.Wait]) -> String? {
        guard let first = waits.first else { return nil }
        let sentence = [after(first), deadline].compactMap { $0 }.joined(separator: "; ")
        return sentence.isEmpty ? nil : sentence
    }

    private var deadline: String? {
        guard let deadline = facts.group.deadlineAt else { return nil }
        switch (facts.group.onDeadline ?? .fail, facts.group.overdue ?? false) {
        case (.fail, false): return "what is not done by \(deadline) fails"
        case (.fail, true): return "its deadline was \(deadline), and what is not done fails now"
        case (.continue, false): return "it is overdue after \(deadline), and goes on all the same"
        case (.continue, true): return "it is overdue since \(deadline)"
        }
    }

    /// What happens once a wait is over, and when that is.
    private func after(_ wait: GroupExplanationDocument.Wait) -> String? {
        let when = wait.until.map { " at \($0)" } ?? ""
        switch wait.reason {
        case .paused: return nil
        case .prerequisites:
            return facts.prerequisites.contains { $0.state.isTerminal }
                ? nil
                : "it begins when these have \(facts.prerequisites.allSatisfy { $0.on == .finished } ? "ended" : "succeeded")"
        case .windowClosed: return "it goes on\(when.isEmpty ? " when its time has come" : when)"
        case .fetching:
            let queued = facts.group.tasks.queued
            return queued > 0
                ? "\(queued) more task\(queued == 1 ? " is" : "s are") begun as there is room"
                : "files are verified and put in place as their last bytes come"
        case .finalizing: return "tasks succeed if the bytes are the right ones"
        case .noWorker: return WaitSentence.afterNoWorker(facts.workers)
        case .sinkParked: return WaitSentence.afterSinkParked(group: facts.group.name)
        case .resolver: return "it goes on with the fresh URLs"
        case .backoff: return "it is tried again\(when)"
        case .sameFile: return WaitSentence.afterSameFile
        case .originPaused:
            let sooner = situation.origins.filter { $0.readyChunks > 0 }.map(\.origin).compactMap {
                WaitSentence.sooner($0.key, until: $0.pausedUntil, isTried: $0.isTried, at: situation.at)
            }.first
            return "it goes on\(when)\(sooner.map { "; \($0)" } ?? "")"
        case .groupFull: return "it goes on when another transfer of the group ends"
        case .originFull:
            return urgent.map { WaitSentence.afterUrgent($0, of: facts.group.name) } ?? WaitSentence.afterOriginFull
        case .rateLimited: return "it goes on at this rate"
        case .workersBusy:
            return urgentForSlots.map { WaitSentence.afterUrgent($0, of: facts.group.name, isForSlots: true) }
                ?? WaitSentence.afterWorkersBusy
        case .unsealed: return "it takes more tasks until then"
        }
    }
}

extension GroupSituation.Origin {
    /// Whether it may have another connection; `nil` while it is paused.
    var hasRoom: Bool? { origin.pausedUntil == nil ? origin.connections < Int64(origin.allowedConnections) : nil }
}
