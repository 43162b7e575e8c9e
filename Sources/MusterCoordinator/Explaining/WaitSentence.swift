import MusterCore

/// What a status, the explanation of a task and that of its group have in common: one thing is said in the same words by all of them.
enum WaitSentence {
    /// The whole group was told to wait.
    static func paused(group: String) -> String { "the group is paused; go on with: muster resume \(group)" }

    /// `the group "a"`, or `the groups "a", "b"`.
    static func groups(_ names: [String]) -> String {
        "the group\(names.count == 1 ? "" : "s") \(names.map { "\"\($0)\"" }.joined(separator: ", "))"
    }

    /// Nobody could do the work.
    static func noWorker(sink: String) -> String {
        "no live worker reaches the sink \"\(sink)\"; start one with: muster work --sink \(sink)=DIR"
    }

    /// The sink is not well.
    ///
    /// - Parameters:
    ///   - place: where that is so.
    ///   - detail: what was seen, if that is known.
    static func sinkInTrouble(_ sink: String, at place: String = "every worker", _ detail: String?) -> String {
        "the sink \"\(sink)\" is in trouble at \(place)\(detail.map { ": \($0)" } ?? "")"
    }

    /// The workers that hold something and have not been heard of, the one that was heard of longest ago first; nothing if there are none.
    static func silence(_ workers: [(worker: String, since: Timestamp)], at now: Timestamp) -> String {
        guard let first = workers.first else { return "" }
        let others = workers.count == 1 ? "" : " and \(workers.count - 1) more"
        return "; nothing has been heard of the worker \(first.worker)\(others) for "
            + "\(now.since(first.since).components.seconds) s"
    }

    /// The group has as many leases as its cap allows.
    static func groupFull(_ cap: Int32) -> String { "the group has \(all(cap)) that it may have" }

    /// An origin has as many leases as are allowed now.
    static func originFull(_ key: String, allowed: Int32) -> String {
        "the origin \(key) has \(all(allowed)) that it may have now"
    }

    private static func all(_ connections: Int32) -> String {
        connections == 1 ? "the one connection" : "all of the \(connections) connections"
    }

    /// All slots are taken.
    static func workersBusy(sink: String) -> String { "every worker that reaches the sink \"\(sink)\" is busy" }
}
