import MusterAPI
import MusterCore

@testable import MusterCommandLine

/// Documents for tests.
enum Samples {
    /// A clock 15 s after `moment`, one hour east of Greenwich.
    static let clock = WallClock(now: Timestamp(microseconds: moment.microseconds + 15_000_000)) { _ in 3_600 }
    /// 2026-03-01T12:00:00Z.
    static let moment = Timestamp(microseconds: 1_772_366_400_000_000)

    /// A group half done.
    static func group(
        _ name: String = "nightly",
        state: GroupState = .sealed,
        total: Int64 = 40,
        succeeded: Int64 = 12,
        failed: Int64 = 0,
        unknown: Int64 = 0,
        eta: Int64? = 42,
        generation: Int32 = 1,
        limits: GroupLimits = GroupLimits(),
        notes: [String] = []
    ) -> GroupDocument {
        var group = GroupDocument(name: name, state: state, sink: "default", createdAt: moment)
        group.generation = generation
        group.limits = limits
        group.tasks = .init(
            total: total, queued: state.isTerminal ? 0 : total - succeeded - failed, succeeded: succeeded,
            failed: failed)
        group.bytes = .init(done: 1_288_490_188, total: 2_791_728_742, unknownTasks: unknown)
        group.bytesPerSecond = 36_805_017
        group.etaSeconds = eta
        group.finishedAt = state.isTerminal ? moment : nil
        group.notes = notes
        return group
    }

    /// A task whose last try failed.
    static func troubled(_ path: String, kind: FailureKind = .httpStatus(503), inSeconds: Int64? = 4) -> TaskDocument {
        var task = task(.queued, path)
        task.attempts = 2
        task.failure = TaskFailure(kind: kind, detail: "what was seen of it", at: moment)
        task.retry = TaskRetry(number: 3, limit: 8, inSeconds: inSeconds)
        return task
    }

    /// A paused task with some of its bytes.
    static func part(_ path: String, done: Int64, total: Int64?) -> TaskDocument {
        var task = task(.paused, path)
        task.bytes = .init(done: done, total: total)
        return task
    }

    /// A succeeded task.
    static func finished(_ path: String, size: Int64) -> TaskDocument {
        var task = task(.succeeded, path)
        task.bytes = .init(done: size, total: size)
        task.attempts = 1
        task.finishedAt = moment
        return task
    }

    private static func task(_ state: TaskState, _ path: String) -> TaskDocument {
        var task = TaskDocument(
            key: path, state: state, urls: ["https://example.org/\(path)"], path: path, createdAt: moment)
        task.startedAt = moment
        return task
    }

    /// A live worker.
    static let worker = WorkerDocument(
        name: "w", session: SessionID(rawValue: 1), version: "1", startedAt: moment, lastSeenAt: moment)

    /// The facts of a task's event: its path, and further fields.
    static func task(
        _ key: String = "k", path: String? = nil, with more: [String: JSONValue] = [:]
    ) -> [String: JSONValue] {
        ["group": .string("nightly"), "key": .string(key), "path": .string(path ?? key)].merging(more) { $1 }
    }

    /// The facts of the event of a succeeded task.
    static func success(_ path: String, size: Int64) -> [String: JSONValue] {
        task(
            path,
            with: [
                "size": .integer(size), "digests": .object([:]), "contentVersion": .integer(1), "metadata": .null,
            ])
    }

    /// The facts of a group that has ended.
    static func end(_ state: GroupState) -> [String: JSONValue] {
        let none = JSONValue.integer(0)
        return [
            "group": .string("nightly"), "generation": .integer(1), "state": .string(state.rawValue),
            "sink": .string("default"), "metadata": .null, "bytes": .object(["done": none, "total": none]),
            "tasks": .object(["total": none, "succeeded": none, "failed": none, "cancelled": none]),
        ]
    }

    /// An event about a task or a group.
    static func event(
        _ type: String, _ data: [String: JSONValue], group: String = "nightly", position: Int64 = 42
    ) -> EventDocument {
        EventDocument(
            id: "e",
            type: "dev.muster.\(type).v1",
            subject: "groups/\(group)",
            time: moment,
            position: position,
            data: .object(data)
        )
    }
}
