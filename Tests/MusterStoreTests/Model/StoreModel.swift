import MusterCore
import MusterStore

/// What the store should do, in dictionaries: the same verbs without a database. Time passes when it is told so.
///
/// It does not choose what is leased: it is told what the store granted, and says whether that was allowed.
struct StoreModel {
    struct Group {
        var state = GroupState.open
        var desired = "run"
        var generation = 1
        var maxConnections: Int?
        var tasks: [String: Task] = [:]
    }

    struct Task {
        var state = TaskState.queued
        var sources: [String]
        var dead: Set<Int> = []
        var expected: Int64?
        var size: Int64?
        var version = 1
        var run = 1
        var attempts = 0
        var restarts = 0
        var isPlanned = false
        var isStream = false
        var isFenced = false
        var wasStarted = false
        var bytesDone: Int64 = 0
        var chunks: [Chunk]
        var done: [(first: Int64, last: Int64)] = []

        var leases: Int { chunks.count { $0.kind == .fetch && $0.lease != nil } }
    }

    struct Chunk {
        enum Status: Equatable {
            case ready, waiting, parked
            case leased(Lease)
        }
        var kind = LeaseKind.fetch
        var first: Int64 = 0
        var last: Int64?
        var resume: Int64 = 0
        var durable: Int64 = 0
        var source = 0
        var attempts = 0
        var deaths = 0
        var status = Status.ready

        var lease: Lease? {
            if case .leased(let lease) = status { lease } else { nil }
        }
    }

    struct Lease: Equatable {
        var session: SessionID
        var sync: Int64
        var epoch: LeaseEpoch
    }

    struct Session {
        var sequence: Int64 = 0
        var isExpired = false
        var isDraining = false
        var isParked = false
    }

    /// A task by its name.
    struct Place: Hashable {
        var group: String
        var key: String
    }

    let policy: Store.Policy
    var groups: [String: Group] = [:]
    var sessions: [SessionID: Session] = [:]
    var parkedOrigins: Set<String> = []
    /// What waits to be deleted, by the store's id of the task.
    var purges: [TaskID: Chunk] = [:]
    var events: [String] = []
    var newestEpoch = LeaseEpoch(0)
    /// The tasks' names by the store's ids.
    var places: [TaskID: Place] = [:]

    init(policy: Store.Policy) { self.policy = policy }

    subscript(place: Place) -> Task? {
        get { groups[place.group]?.tasks[place.key] }
        set { groups[place.group]?.tasks[place.key] = newValue }
    }

    /// The task that has a lease, and the chunk's place in it.
    func find(_ lease: GrantedLease, by session: SessionID) -> (place: Place, index: Int)? {
        guard let place = places[lease.task], let task = self[place] else { return nil }
        let index = task.chunks.firstIndex { $0.lease?.epoch == lease.name.epoch && $0.lease?.session == session }
        return index.map { (place, $0) }
    }

    mutating func say(_ type: String, _ place: Place, generation: Int? = nil, version: Int? = nil) {
        var words = ["event", "dev.muster.\(type).v1", place.group]
        if !place.key.isEmpty { words.append(place.key) }
        if let generation { words.append("\(generation)") }
        if let version { words.append("\(version)") }
        events.append(words.joined(separator: " "))
    }

    /// The zero test (I7).
    mutating func close(_ name: String) {
        guard var group = groups[name], group.state == .sealed, group.tasks.values.allSatisfy(\.state.isTerminal) else {
            return
        }
        if group.desired == "cancel" {
            group.state = .cancelled
        } else {
            group.state = group.tasks.values.contains { $0.state == .failed } ? .failed : .succeeded
        }
        groups[name] = group
        say("group.\(group.state.rawValue)", Place(group: name, key: ""), generation: group.generation)
    }

    /// What `StoreText` shows of the store.
    var lines: [String] {
        var lines = events
        for (name, group) in groups {
            lines.append(line(name, group))
            for (key, task) in group.tasks { lines += self.lines("\(name) \(key)", task) }
        }
        for (status, count) in Dictionary(purges.values.map { (Self.name($0.status), 1) }, uniquingKeysWith: +) {
            lines.append("purges \(status) \(count)")
        }
        return lines.sorted()
    }

    private func line(_ name: String, _ group: Group) -> String {
        func count(_ state: TaskState) -> Int { group.tasks.values.count { $0.state == state } }
        let counted = group.tasks.values.filter { $0.state != .cancelled }
        let done = group.tasks.values.reduce(0) { sum, task in
            sum + task.bytesDone + task.chunks.filter { $0.kind == .fetch }.reduce(0) { $0 + $1.durable - $1.first }
        }
        let counts = [TaskState.queued, .active, .paused, .finalizing, .succeeded, .failed, .cancelled].map {
            "\(count($0))"
        }
        return [
            "group \(name) \(group.state.rawValue) \(group.desired) generation \(group.generation) counts",
            counts.joined(separator: " "), "bytes \(done) \(counted.reduce(0) { $0 + ($1.size ?? 0) })",
            "\(counted.count { $0.size == nil })",
        ].joined(separator: " ")
    }

    private func lines(_ name: String, _ task: Task) -> [String] {
        var words = [
            "task \(name) \(task.state.rawValue) v \(task.version) run \(task.run) attempts \(task.attempts)",
            "restarts \(task.restarts) size \(task.size.map { "\($0)" } ?? "?") done \(task.bytesDone)",
        ]
        if task.isPlanned { words.append("planned") }
        if task.isStream { words.append("stream") }
        if task.isFenced { words.append("fenced") }
        var lines = [words.joined(separator: " ")]
        for chunk in task.chunks {
            lines.append(
                "chunk \(name) \(chunk.kind.rawValue) \(chunk.first) \(chunk.last.map { "\($0)" } ?? "?") at \(chunk.durable) "
                    + "\(Self.name(chunk.status)) source \(chunk.source) attempts \(chunk.attempts) deaths \(chunk.deaths)"
            )
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
