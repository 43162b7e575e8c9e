import MusterAPI
import MusterCore
import MusterStore

/// The steps that have to happen in order before a group ends, as sentences with numbers.
struct CriticalPath: Sendable {
    /// The facts that the sentences are made from.
    let facts: GroupFacts
    /// The origin that is expected to end last.
    let slowest: GroupSituation.Origin?

    /// The sentences; none for a group that has ended.
    var sentences: [String] {
        guard !facts.group.state.isTerminal else { return [] }
        return ends.map(prerequisite) + facts.prerequisites.map(prerequisite)
            + [resumed, window, worker, fetched, lastChunk, resumedMembers, placed, sealed].compactMap { $0 }
    }

    /// The lost groups (`GroupSituation.lost`) that are not its own prerequisites: its prerequisites wait for them in vain.
    private var ends: [PrerequisiteRecord] {
        facts.situation.lost.filter { end in !facts.prerequisites.contains { $0.group == end.group } }
    }

    private func prerequisite(_ other: PrerequisiteRecord) -> String {
        let wish = "the group \"\(other.group)\" has to \(other.on == .succeeded ? "succeed" : "end")"
        guard other.state.isTerminal else { return "\(wish); it is \(other.state.rawValue)" }
        let problem = "\(wish), but it has \(GroupExplanation.ending(other.state)): \(GroupExplanation.remedy(other))"
        guard facts.prerequisites.contains(where: { $0.group == other.group }) else { return problem }
        return "\(problem), or let this one go without it: muster limit \(ShellWord(facts.group.name)) --after none"
    }

    private var resumed: String? {
        facts.isPaused ? "it has to be resumed: muster resume \(ShellWord(facts.group.name))" : nil
    }

    private var window: String? {
        let tasks = facts.group.tasks
        guard case .closed(let until) = facts.window, tasks.queued + tasks.active + tasks.paused > 0 else { return nil }
        return "its window has to open" + (until.map { " at \($0)" } ?? "")
    }

    private var worker: String? {
        guard facts.unfinished > 0 else { return nil }
        if facts.workers.areAllSilent { return "a worker has to be heard of again, or another one to come" }
        guard facts.workers.reaching == 0 else { return nil }
        return "a worker has to reach the sink \"\(facts.group.sink)\""
    }

    private var fetched: String? {
        guard facts.group.tasks.queued + facts.group.tasks.active > 0 else { return nil }
        let unknown = facts.group.bytes.unknownTasks
        let others = "\(unknown) task\(unknown == 1 ? "" : "s") of unknown size"
        let rest = unknown == 0 || facts.rest > 0 ? "\(ByteCount(bytes: facts.rest))" : nil
        let all = [rest, unknown > 0 ? others : nil].compactMap { $0 }.joined(separator: " and ") + " to be fetched"
        guard let slowest else { return all }
        guard slowest.connections > 0, slowest.bytesPerSecond > 0 else {
            let pause = slowest.origin.pausedUntil.map { ", which is paused until \($0)" } ?? ""
            let what = slowest.connections > 0 ? "nothing comes" : "nothing is asked for"
            return "\(all); \(what) from \(slowest.origin.key) now\(pause)"
        }
        // A speed above the allowed rate may not last, so it gives no time.
        let mayLast = facts.bytesPerSecondAllowed.map { slowest.bytesPerSecond <= $0 } ?? true
        let time =
            (mayLast ? GroupEstimate.seconds(of: slowest) : nil).map {
                ", about \(DurationNotation.format(.seconds($0)))"
            } ?? ""
        return
            "\(all); slowest from \(slowest.origin.key) over \(slowest.connections) of \(slowest.origin.allowedConnections) connections at "
            + "\(ByteCount(bytes: slowest.bytesPerSecond))/s\(time)"
    }

    private var lastChunk: String? {
        guard let straggler = facts.straggler, !facts.workers.areAllSilent else { return nil }
        let left = straggler.bytesLeft.map { "\(ByteCount(bytes: $0)) left" } ?? "of unknown size,"
        let who = straggler.worker.map { " by the worker \($0)" } ?? ""
        return "the slowest chunk of now has to end: \(straggler.key) from \(straggler.origin)\(who), \(left) at "
            + "\(ByteCount(bytes: straggler.bytesPerSecond))/s"
    }

    private var resumedMembers: String? {
        let tasks = facts.group.tasks.paused
        guard tasks > 0, !facts.isPaused else { return nil }
        return "\(tasks) paused task\(tasks == 1 ? " has" : "s have") to be resumed: "
            + "muster resume \(ShellWord(facts.group.name))"
    }

    private var placed: String? {
        guard facts.unfinished > 0 else { return nil }
        let tasks = facts.group.tasks.finalizing
        return tasks > 0 && tasks == facts.unfinished
            ? "\(tasks) task\(tasks == 1 ? " has" : "s have") to be verified and put in place"
            : "the last of its files has to be verified and put in place"
    }

    private var sealed: String? {
        facts.group.state == .open ? "it has to be sealed: muster seal \(ShellWord(facts.group.name))" : nil
    }
}
