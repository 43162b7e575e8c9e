import MusterAPI
import MusterCore

/// Lines about what goes wrong and is tried again, each failure once.
struct PlainTroubles: Sendable {
    /// The most that are named at a time.
    static let most = 5

    /// The last failure of each task that was named.
    private var named: [String: Timestamp] = [:]

    /// Nothing was named yet.
    init() {}

    /// The lines about what failed since the last look.
    mutating func lines(_ tasks: [TaskDocument], of group: GroupDocument) -> [String] {
        let fresh = tasks.filter { $0.failure.map(\.at) != named[$0.key] }
        // What is well again is forgotten.
        named = tasks.reduce(into: [:]) { $0[$1.key] = $1.failure?.at }
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
