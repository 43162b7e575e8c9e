import MusterAPI
import MusterCore

/// Progress for a pipe or a log: a line now and then, a line for each finished file, and a summary.
struct PlainProgress: Sendable {
    /// The least time between two lines about the group.
    static let interval: Duration = .seconds(5)
    /// The most time between two lines while files are under way or tried again, even without news: a log without lines looks like a
    /// command that hangs.
    static let heartbeat: Duration = .seconds(10)

    private var last: (line: String, at: ContinuousClock.Instant)?
    private var troubles = PlainTroubles()

    /// Progress with no line printed yet.
    init() {}

    /// The lines about what went wrong since the last call.
    mutating func lines(
        _ troubles: [TaskDocument], of group: GroupDocument, now: ContinuousClock.Instant
    ) -> [String] {
        self.troubles.lines(troubles, of: group, now: now)
    }

    /// The line about the group, if one is due: its text is new and `interval` is over, or files are under way or tried again and
    /// `heartbeat` is over. A group that waits for something, perhaps for hours, is reported once.
    mutating func line(_ snapshot: ProgressSnapshot, now: ContinuousClock.Instant) -> String? {
        let text = Self.line(snapshot)
        let tasks = snapshot.group.tasks
        let isBusy = tasks.active + tasks.finalizing > 0 || !(snapshot.group.trouble ?? []).isEmpty
        if let last {
            let isNews = text != last.line
            guard isNews || isBusy, now >= last.at + (isNews ? Self.interval : Self.heartbeat) else { return nil }
        }
        last = (text, now)
        // The comparison is made before times from now are added: a line that says the same an hour later is no news.
        return WallClock.ofThisMachine.sentence(text)
    }

    /// The last line about a group of which nothing more arrives, with the average speed.
    static func stopped(_ snapshot: ProgressSnapshot, _ gain: Gain, clock: WallClock = .ofThisMachine) -> String {
        clock.sentence(line(snapshot, speed: gain.rate.map { "\($0) on average" }))
    }

    /// A line about the group, with moments in local time.
    static func sentence(_ snapshot: ProgressSnapshot, clock: WallClock = .ofThisMachine) -> String {
        clock.sentence(line(snapshot))
    }

    /// A line about the group, with moments as in JSON.
    private static func line(_ snapshot: ProgressSnapshot) -> String {
        let eta = snapshot.group.etaSeconds.map { ", ETA \(DurationNotation.format(.seconds($0)))" } ?? ""
        return line(snapshot, speed: snapshot.speedText.map { $0 + eta })
    }

    private static func line(_ snapshot: ProgressSnapshot, speed: String?) -> String {
        let group = snapshot.group
        var parts = [snapshot.filesText, snapshot.bytesText] + [speed].compactMap { $0 }
        parts += snapshot.troubles.map(\.text) + group.notes.map { TextWidth.escaped($0) }
        return "\(TextWidth.escaped(group.name)): " + parts.joined(separator: ", ")
    }

    /// The last line: how the group ended, and how fast it arrived if `gain` is known.
    static func summary(_ group: GroupDocument, _ gain: Gain? = nil) -> String {
        let counts = [
            (group.tasks.succeeded, "succeeded"), (group.tasks.failed, "failed"), (group.tasks.cancelled, "cancelled"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let bytes = gain?.text(all: group.bytes.done) ?? "\(ByteCount(bytes: group.bytes.done))"
        let parts = (counts.isEmpty ? ["no tasks"] : counts) + [bytes]
        return "\(TextWidth.escaped(group.name)): \(group.state.rawValue): " + parts.joined(separator: ", ")
    }

    /// The line about a task that failed for good.
    static func failure(_ task: TaskDocument) -> String {
        let failure = task.failure.map { FailureText.text($0, isDecided: true) } ?? "unknown"
        return TextWidth.escaped("failed: \(task.key): \(failure)")
    }
}
