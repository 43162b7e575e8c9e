import MusterAPI
import MusterCore

/// The state that is shown as progress: a group at one moment, and some of the files that are under way.
struct ProgressSnapshot: Sendable {
    /// A file that is being fetched.
    struct File: Hashable, Sendable {
        /// Its path below the sink.
        var name: String
        /// Bytes that are durable.
        var done: Int64
        /// The whole size; `nil` while it is unknown.
        var total: Int64?
        /// Recent bytes per second; `nil` unless the file is being fetched.
        var bytesPerSecond: Int64?
        /// Whether it is being verified and put in place.
        var isFinalizing = false
        /// Its last failure, if nothing has arrived since.
        var trouble: TroubleText?
    }

    /// States of tasks that get a count of their own.
    enum Trouble: String, Hashable, Sendable {
        /// They were given up.
        case failed
        /// Their last try failed.
        case retrying
        /// They wait until they are resumed.
        case paused
        /// They were ended by a request.
        case cancelled
    }

    /// The group.
    var group: GroupDocument
    /// Files under way, and those that wait for another try, at most as many as are shown.
    var files: [File] = []
    /// How many more files are under way than are shown.
    var moreFiles: Int64 = 0

    /// How many files are shown at once.
    static let shownFiles = 8

    /// The share of the group's bytes that is there, in percent; `nil` while it is unknown because the size of a file is. 100 means
    /// complete and nothing less.
    var percent: Int? {
        if group.tasks.total > 0, group.tasks.succeeded >= group.tasks.total { return 100 }
        guard group.bytes.unknownTasks == 0, group.bytes.total > 0 else { return nil }
        return Self.percent(group.bytes.done, of: group.bytes.total)
    }

    /// How full the bar is, in percent; without sizes it shows the share of finished files, if there are several.
    var barPercent: Int? {
        percent ?? (group.tasks.total > 1 ? Self.percent(group.tasks.succeeded, of: group.tasks.total) : nil)
    }

    /// A share in percent, 99 at the most.
    static func percent(_ done: Int64, of total: Int64) -> Int {
        guard total > 0 else { return 0 }
        return Int(min(99, Double(max(0, done)) * 100 / Double(total)))
    }

    /// `12/40 files`.
    var filesText: String {
        "\(group.tasks.succeeded)/\(group.tasks.total) file\(group.tasks.total == 1 ? "" : "s")"
    }

    /// `1.2 GiB/2.6 GiB`; a `+` says that not every size is known.
    var bytesText: String {
        let total = "\(ByteCount(bytes: group.bytes.total))"
        return "\(ByteCount(bytes: group.bytes.done))/\(total)\(group.bytes.unknownTasks > 0 ? "+" : "")"
    }

    /// The speed; `nil` when no task is queued or under way: the measured speed decays for a while after the last byte.
    var speedText: String? {
        let tasks = group.tasks
        guard !group.state.isTerminal, tasks.queued + tasks.active + tasks.finalizing > 0 else { return nil }
        return Self.rate(group.bytesPerSecond)
    }

    /// `35.1 MiB/s`.
    static func rate(_ bytesPerSecond: Int64) -> String { "\(ByteCount(bytes: bytesPerSecond))/s" }

    /// `1m 20s`, or `-` when that can't be told.
    static func time(_ seconds: Int64?) -> String { seconds.map { DurationNotation.format(.seconds($0)) } ?? "-" }

    /// The bytes that are still to come under leases: `52.0 MiB`; a `+` says that not every length is known, `-` that there are none.
    static func toCome(_ bytes: LeaseProgress?) -> String {
        guard let bytes, bytes.total > 0 || bytes.unknownLeases > 0 else { return "-" }
        let mark = bytes.unknownLeases > 0 ? "+" : ""
        return "\(ByteCount(bytes: max(0, bytes.total - bytes.done)))\(mark)"
    }

    /// The counts of such tasks: `2 failed`, `1 retrying`.
    var troubles: [(kind: Trouble, text: String)] {
        let retrying = (group.trouble ?? []).reduce(0) { $0 + $1.tasks }
        let counts: [(Int64, Trouble)] = [
            (group.tasks.failed, .failed), (retrying, .retrying), (group.tasks.paused, .paused),
            (group.tasks.cancelled, .cancelled),
        ]
        return counts.filter { $0.0 > 0 }.map { ($1, "\($0) \($1.rawValue)") }
    }
}

extension ProgressSnapshot.File {
    /// The file of a task.
    init(_ task: TaskDocument) {
        self.init(
            name: task.path, done: task.bytes.done, total: task.bytes.total,
            bytesPerSecond: task.state == .active ? task.bytesPerSecond : nil, isFinalizing: task.state == .finalizing,
            trouble: TroubleText(task))
    }
}
