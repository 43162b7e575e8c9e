import MusterAPI
import MusterCore

/// Lines about failures that are tried again, each printed once. A large file has many chunks, which fail together in an outage: a failure
/// of the same kind before the announced next try is no news. On a full disk a few files are named, and no more while it stays full.
struct PlainTroubles: Sendable {
    /// The most files that are named at a time.
    static let most = 5

    /// What was printed about a task.
    private struct Told {
        let failedAt: Timestamp
        let kind: FailureKind
        let number: Int32
        let due: ContinuousClock.Instant

        init?(_ task: TaskDocument, now: ContinuousClock.Instant) {
            guard let failure = task.failure, let retry = task.retry else { return nil }
            (failedAt, kind, number) = (failure.at, failure.kind, retry.number)
            due = now + .seconds(retry.inSeconds ?? 0)
        }

        /// Whether `other` needs no new line: it is the same failure, or has the same kind and number while the next try is not due.
        func covers(_ other: Told, now: ContinuousClock.Instant) -> Bool {
            failedAt == other.failedAt || (kind, number) == (other.kind, other.number) && now < due
        }

        /// Whether the task failed for lack of room.
        var isForLackOfRoom: Bool { kind.isLackOfRoom }
    }

    /// What was printed last about each task in trouble, by its key.
    private var told: [String: Told] = [:]
    /// How many failures for lack of room were counted since the disk became full.
    private var roomless = 0

    /// A state with nothing printed yet.
    init() {}

    /// The lines about what failed since the last call.
    mutating func lines(
        _ tasks: [TaskDocument], of group: GroupDocument, now: ContinuousClock.Instant
    ) -> [String] {
        var fresh: [TaskDocument] = []
        if !(group.trouble ?? []).contains(where: \.kind.isLackOfRoom) { roomless = 0 }
        // Tasks that are no longer in trouble are forgotten.
        told = tasks.reduce(into: [:]) { next, task in
            guard let news = Told(task, now: now) else { return }
            if let last = told[task.key], last.covers(news, now: now) {
                next[task.key] = last
            } else {
                next[task.key] = news
                if news.isForLackOfRoom { roomless += 1 }
                if !news.isForLackOfRoom || roomless <= Self.most { fresh.append(task) }
            }
        }
        return fresh.isEmpty ? [] : Self.lines(fresh, of: group)
    }

    /// A line for each task, and how many more there are.
    static func lines(_ tasks: [TaskDocument], of group: GroupDocument) -> [String] {
        let lines = tasks.compactMap { task in
            TroubleText(task).map { "retrying: \(TextWidth.escaped(task.path)): \($0.line)" }
        }
        let rest = (group.trouble ?? []).reduce(0) { $0 + $1.tasks } - Int64(tasks.count)
        guard rest > 0, tasks.count >= most else { return lines }
        return lines + ["… and \(rest) more are tried again"]
    }
}
