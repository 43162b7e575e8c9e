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
    static func afterNoWorker(_ workers: SinkWorkers) -> String {
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
    static func silence(_ workers: [SinkWorkers.Silent], at now: Timestamp) -> String? {
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

    /// The group has as many connections as its cap allows.
    static func groupFull(_ cap: Int32) -> String { "the group has \(all(cap)) that it may have" }

    /// An origin has as many connections as are allowed now.
    static func originFull(_ origin: OriginRecord) -> String {
        "the origin \(origin.key) has \(all(origin.allowedConnections)) that it may have now"
            + (origin.limit.map { ": \(limit($0))" } ?? "")
    }

    /// What happens once an origin has room.
    static let afterOriginFull = "it goes on when another transfer from there ends"

    /// Several full origins, of which the first with a learned limit is named.
    static func originsFull(_ origins: [OriginRecord]) -> String {
        "\(origins.count) of its origins have as many connections as they may have now"
            + (origins.first { $0.limit != nil }.map { "; \(originFull($0))" } ?? "")
    }

    /// More urgent groups leave no connection to full origins.
    static func urgent(_ groups: UrgentGroups) -> String {
        groups.count == 1
            ? "\(named(groups)), which has a higher priority, takes every one that comes free"
            : "\(named(groups)), which have a higher priority, take every one that comes free"
    }

    /// What happens once more urgent groups leave connections, and what helps sooner.
    ///
    /// - Parameter isForSlots: whether those groups take the slots of workers, and not the connections of full origins.
    static func afterUrgent(_ groups: UrgentGroups, of group: String, isForSlots: Bool = false) -> String {
        let (those, help) =
            groups.count == 1
            ? ("that group has", "to share with it")
            : ("those groups have", "to be served with the most urgent of them")
        // A worker may have transfers beyond its slots (adr/0051).
        let place = isForSlots ? ", or with a transfer beyond the slots" : " at the same origin"
        return
            "it goes on when \(those) nothing more to begin\(place); \(help): "
            + "muster limit \(ShellWord(group)) --priority \(groups.priority)"
    }

    /// `the groups "a", "b", "c" and 2 more`; `at least 97 more` where there may be others that were not looked at.
    private static func named(_ urgent: UrgentGroups) -> String {
        let more = urgent.count - Int64(urgent.names.count)
        let bound = urgent.count < UrgentGroups.considered ? "" : "at least "
        return groups(urgent.names) + (more > 0 ? " and \(bound)\(more) more" : "")
    }

    /// What a group without any transfer waits for, in short; `nil` if one is about to begin.
    static func queue(_ queue: GroupQueue, sink: String) -> String? {
        let full = queue.origins.filter(\.isFull)
        guard full.count == queue.origins.count, let first = full.first else {
            return queue.areWorkersBusy ? workersBusy(sink: sink, behind: queue.urgentForSlots) : nil
        }
        let place = full.count == 1 ? first.key : "one of \(full.count) origins"
        guard let urgent = UrgentGroups(at: full.map(\.key), in: queue.urgent) else {
            return "it waits for a free connection to \(place)"
        }
        return "it waits for a connection to \(place) behind \(named(urgent)) of a higher priority"
    }

    /// Why an origin may have fewer connections now than its cap says.
    static func limit(_ limit: OriginRecord.Limit) -> String {
        let how = limit.status.map { "refused others with \($0)" } ?? "ended connections of others"
        return "it \(how) \(limit.seconds) s ago; one more is tried every 10 s"
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

    /// All slots are taken, and more urgent groups may get the next ones.
    static func workersBusy(sink: String, behind urgent: UrgentGroups?) -> String {
        "every worker that reaches the sink \"\(sink)\" is busy"
            + (urgent.map { "; \(named($0)) of a higher priority \($0.count == 1 ? "comes" : "come") first" } ?? "")
    }

    /// What happens once a worker has room.
    static let afterWorkersBusy = "a worker takes it as soon as it has room"
}

extension UrgentGroups {
    /// The groups that leave no connection to any of these origins; `nil` if one of the origins has connections for others.
    init?(at origins: [String], in urgent: [String: UrgentGroups]) {
        let all = origins.compactMap { urgent[$0] }
        guard all.count == origins.count, var sum = all.first else { return nil }
        for other in all.dropFirst() {
            for name in other.names where !sum.names.contains(name) { sum.names.append(name) }
            sum.priority = max(sum.priority, other.priority)
            sum.count = max(sum.count, other.count, Int64(sum.names.count))
        }
        sum.names = Array(sum.names.prefix(Self.named))
        self = sum
    }
}
