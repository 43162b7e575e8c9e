import MusterCore
import MusterStore

/// The sentences that a status, the explanation of a task and the explanation of its group share: all of them use the same words.
enum WaitSentence {
    /// The whole group is paused.
    static func paused(group: String) -> String { "the group is paused; go on with: muster resume \(ShellWord(group))" }

    /// `the group "a"`, or `the groups "a", "b"`.
    static func groups(_ names: [String]) -> String {
        "the group\(names.count == 1 ? "" : "s") \(names.map { "\"\($0)\"" }.joined(separator: ", "))"
    }

    /// No worker could do the work.
    ///
    /// - Parameter own: the state of the workers for the sink that belong to the coordinator's own process.
    static func noWorker(sink: String, own: OwnProcess.Workers) -> String {
        let help = "start one with: muster work --sink \(sink)=DIR"
        let more =
            switch own {
            case .none: "; \(help)"
            case .passing, .coming: " now; muster up starts its own by itself, and says what keeps them"
            case .left: ": those of muster up were told to leave, and come back when that is started again; or \(help)"
            case .within: " now; that of this command comes back by itself"
            }
        return "no live worker reaches the sink \"\(sink)\"\(more)"
    }

    /// What happens next when no worker could do the work.
    static func afterNoWorker(_ workers: TaskFacts.Workers) -> String {
        workers.areAllSilent
            ? "it goes on when that is heard of again, or another worker for the sink is there"
            : "it goes on when a worker for the sink is there"
    }

    /// What happens once another task has fetched the same file.
    static let afterSameFile = "it is made of that file when that is there; if that one fails, it is fetched"

    /// The sink is in trouble.
    ///
    /// - Parameters:
    ///   - place: the workers at which it is in trouble.
    ///   - detail: the observed trouble, if known.
    static func sinkInTrouble(_ sink: String, at place: String = "every worker", _ detail: String?) -> String {
        "the sink \"\(sink)\" is in trouble at \(place)\(detail.map { ": \($0)" } ?? "")"
    }

    /// What happens once the sink is well again, and how to make room in it.
    static func afterSinkParked(group: String) -> String {
        "it goes on by itself when the sink is well again; if its disk is full, make room there, which muster cancel \(ShellWord(group)) does too"
    }

    /// The silent workers, the longest silence first; `nil` if there are none.
    static func silence(_ workers: [TaskFacts.SilentWorker], at now: Timestamp) -> String? {
        guard let first = workers.first else { return nil }
        if let trouble = first.databaseTrouble { return "what workers report can't be stored: \(trouble)" }
        let others = workers.count == 1 ? "" : " and \(workers.count - 1) more"
        let said =
            "nothing has been heard of the worker \(first.name)\(others) for \(now.since(first.since).components.seconds) s"
        guard let end = first.endsAt else { return said }
        let seconds = end.since(now).components.seconds
        return
            "\(said); \(workers.count == 1 ? "it" : "the first") counts as gone \(seconds > 0 ? "in \(seconds) s" : "now")"
    }

    /// Nothing has come since a request at this moment; `nil` while the request is too recent for that to matter.
    static func nothingCame(since moment: Timestamp, at now: Timestamp) -> String? {
        let time = now.since(moment)
        guard time >= .seconds(8) else { return nil }
        return "nothing has come for \(DurationNotation.format(.seconds(time.components.seconds)))"
    }

    /// The group has as many leases as its cap allows.
    static func groupFull(_ cap: Int32) -> String { "the group has \(all(cap)) that it may have" }

    /// An origin has as many leases as are allowed now.
    static func originFull(_ origin: TaskFacts.Origin) -> String {
        "the origin \(origin.key) has \(all(origin.allowed)) that it may have now"
            + (origin.limit.map { ": \(limit($0))" } ?? "")
    }

    /// Why an origin may have fewer connections now than its cap says.
    static func limit(_ limit: OriginRecord.Limit) -> String {
        "it refused others\(limit.status.map { " with \($0)" } ?? "") \(limit.seconds) s ago; one more is tried every 10 s"
    }

    /// What is done about an origin that asked for a pause.
    static let tried = "one connection tries it every 10 s, and ends the pause if it is served"

    /// The command that ends a pause which an operator set. There is none for a pause that the origin asked for, since that
    /// is tried automatically, nor for a pause that is over within ten seconds.
    static func sooner(_ origin: String, until: Timestamp?, isTried: Bool, at now: Timestamp) -> String? {
        guard !isTried, let until, until.since(now) > .seconds(10) else { return nil }
        return "sooner with: muster origins set \(ShellWord(origin)) --pause-until none"
    }

    /// An origin has refused connections and served nothing for this many seconds.
    static func outage(_ seconds: Int64) -> String {
        "it refuses connections, and has served nothing for \(DurationNotation.format(.seconds(seconds)))"
    }

    private static func all(_ connections: Int32) -> String {
        connections == 1 ? "the one connection" : "all of the \(connections) connections"
    }

    /// All slots are taken.
    static func workersBusy(sink: String) -> String { "every worker that reaches the sink \"\(sink)\" is busy" }
}
