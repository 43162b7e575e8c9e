import MusterCore
import MusterStore

extension StoreModel {
    /// The model's state, in the form in which `StoreText` shows the store's.
    var lines: [String] {
        var lines = events
        for (name, group) in groups {
            lines.append(line(name, group))
            for (other, prerequisite) in group.prerequisites {
                let mark = prerequisite.isSatisfied ? " satisfied" : ""
                lines.append("after \(name) \(other) \(prerequisite.on.rawValue)\(mark)")
            }
            for (key, task) in group.tasks { lines += self.lines("\(name) \(key)", task) }
        }
        for (status, count) in Dictionary(purges.values.map { (Self.name($0.status), 1) }, uniquingKeysWith: +) {
            lines.append("purges \(status) \(count)")
        }
        lines.append("holdouts \(holdouts.count)")
        for (name, origin) in origins {
            if let learned = origin.learned { lines.append("origin http://\(name).test:80 learned \(learned)") }
        }
        return lines.sorted()
    }

    private func line(_ name: String, _ group: Group) -> String {
        func count(_ state: TaskState) -> Int { group.tasks.values.count { $0.state == state } }
        let counted = group.tasks.values.filter { $0.state != .cancelled }
        let done = group.tasks.values.reduce(0) { $0 + Self.bytes(of: $1) }
        let counts = [TaskState.queued, .active, .paused, .finalizing, .succeeded, .failed, .cancelled].map {
            "\(count($0))"
        }
        var marks: [String] = []
        if group.desired == "run", !group.mayRun { marks.append("waits") }
        if group.isOverdue { marks.append("overdue") }
        if group.isHeld { marks.append("held") }
        return [
            "group \(name) \(group.state.rawValue) \(group.desired) generation \(group.generation)",
            (marks + ["counts"]).joined(separator: " "), counts.joined(separator: " "),
            "bytes \(done) \(counted.reduce(0) { $0 + ($1.size ?? 0) })",
            "\(counted.count { $0.size == nil && $0.state != .failed })",
        ].joined(separator: " ")
    }

    /// The durable bytes of a task.
    static func bytes(of task: Task) -> Int64 {
        task.bytesDone + task.chunks.filter { $0.kind == .fetch }.reduce(0) { $0 + $1.durable - $1.first }
    }

    private func lines(_ name: String, _ task: Task) -> [String] {
        var words = [
            "task \(name) \(task.state.rawValue) v \(task.version) run \(task.run) attempts \(task.attempts)",
            "restarts \(task.restarts) size \(task.size.map { "\($0)" } ?? "?") done \(task.bytesDone)",
        ]
        if task.isPlanned { words.append("planned") }
        words.append("by \(task.rung.rawValue)")
        if task.isFenced { words.append("fenced") }
        if task.mixes { words.append("mixes") }
        if task.isClean { words.append("clean") }
        if task.isPausing, task.state == .finalizing { words.append("pausing") }
        if let teacher = task.teacher { words.append("of \(teacher)") }
        var lines = [words.joined(separator: " ")]
        for (ordinal, source) in task.sources.enumerated() {
            var words = ["source \(name) \(ordinal) http://\(source.origin).test:80"]
            if source.isDead { words.append("dead") }
            words.append("by \(source.rung.rawValue)")
            if source.differsIn == task.version { words.append("differs") }
            words.append("failures \(source.failures) refreshes \(source.refreshes) bytes \(source.bytes)")
            lines.append(words.joined(separator: " "))
        }
        lines += (task.chunks + (task.question.map { [$0] } ?? [])).map { chunk in
            "chunk \(name) \(chunk.kind.rawValue) \(chunk.first) \(chunk.last.map { "\($0)" } ?? "?") at \(chunk.durable) "
                + "\(Self.name(chunk.status)) source \(chunk.source) attempts \(chunk.attempts) deaths \(chunk.deaths)"
        }
        lines += task.done.map { "done \(name) \($0.first) \($0.last)" }
        return lines
    }

    private static func name(_ status: Chunk.Status) -> String {
        switch status {
        case .ready: "ready"
        case .waiting: "waiting"
        case .parked: "parked"
        case .leased: "leased"
        }
    }
}
