import MusterAPI
import MusterCore

/// Lines about what goes wrong and is tried again, each failure once. A large file has many chunks, which fail together in an outage: what fails
/// in the same way before the next try that was told of is no news. On a full disk a few files are named, and no more as long as it is full.
struct PlainTroubles: Sendable {
    /// The most that are named at a time.
    static let most = 5

    /// What was said of a task.
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

        /// Whether what there is now goes without saying.
        func covers(_ other: Told, now: ContinuousClock.Instant) -> Bool {
            failedAt == other.failedAt || (kind, number) == (other.kind, other.number) && now < due
        }

        /// Whether it has no room.
        var isForLackOfRoom: Bool { kind.isLackOfRoom }
    }

    /// What was said last of each task that is in trouble.
    private var told: [String: Told] = [:]
    /// How many files were named that have no room.
    private var roomless = 0

    /// Nothing was named yet.
    init() {}

    /// The lines about what failed since the last look.
    mutating func lines(
        _ tasks: [TaskDocument], of group: GroupDocument, now: ContinuousClock.Instant
    ) -> [String] {
        var fresh: [TaskDocument] = []
        if !(group.trouble ?? []).contains(where: \.kind.isLackOfRoom) { roomless = 0 }
        // What is well again is forgotten.
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
