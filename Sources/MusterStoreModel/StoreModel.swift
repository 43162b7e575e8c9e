import MusterCore
import MusterStore

/// The store's expected behaviour, in dictionaries: the same verbs without a database. Time passes only when a step says so.
///
/// The model does not choose leases: it takes over what the store granted, and reports whether that was allowed.
struct StoreModel {
    struct Group {
        var state = GroupState.open
        var desired = "run"
        var generation = 1
        var maxConnections: Int?
        var hasResolver = false
        var tasks: [String: Task] = [:]
        /// Whether the group's window is closed now.
        var isClosed = false
        /// Whether the group's deadline has passed, and whether it fails by that.
        var isOverdue = false
        var failsWhenOverdue = true
        /// The generation for which the last `group.overdue` event was logged.
        var saidOverdue = 0
        /// Whether the group waits for others, as stored in its own row.
        var isHeld = false
        var prerequisites: [String: Prerequisite] = [:]

        /// Whether chunks of the group may be fetched.
        var mayRun: Bool { desired == "run" && !isHeld && !isClosed && !(isOverdue && failsWhenOverdue) }
    }

    /// A group that another one waits for, or waited for.
    struct Prerequisite {
        var on: PrerequisiteCondition
        var isSatisfied: Bool
    }

    struct Task {
        var state = TaskState.queued
        var sources: [Source]
        var expected: Int64?
        var size: Int64?
        var version = 1
        var run = 1
        var attempts = 0
        var restarts = 0
        var isPlanned = false
        var rung = Rung.chunks
        /// Whether the version has a validator that distinguishes it from all others.
        var isStrong = false
        var isFenced = false
        /// Whether the task is paused as soon as finalizing ends without success.
        var isPausing = false
        var wasStarted = false
        /// The source from which the content version was learned.
        var teacher: Int?
        /// Whether other sources may serve chunks of it.
        var mixes = false
        /// Whether a wrong digest was found, so that sources are not mixed any more.
        var isClean = false
        var bytesDone: Int64 = 0
        var chunks: [Chunk]
        /// The open question to the group's resolver.
        var question: Chunk?
        var done: [(first: Int64, last: Int64)] = []

        var leases: Int { chunks.count { $0.kind == .fetch && $0.lease != nil } }
        /// Whether bytes that have come can be resumed by the next request.
        var goesOn: Bool { rung != .whole || size != nil && isStrong }
    }

    struct Source {
        /// The origin that the source is fetched from now.
        var origin: String
        var isDead = false
        /// The 4xx for which it was given up first.
        var refusedWith: Int?
        /// Whether it was asked once more since.
        var isAskedAgain = false
        /// The content version that the source's content differs from.
        var differsIn: Int?
        /// The rung on which the source is asked.
        var rung = Rung.chunks
        var failures = 0
        var bytes: Int64 = 0
        var refreshes = 0
        var refreshedBytes: Int64?
        /// The step in which its URL was last taken for expired, and the one in which a fresh URL came.
        var askedAt = 0
        var resolvedAt = 0

        init(_ origin: String) { self.origin = origin }
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
        /// The origin whose budget it counts against; empty for chunks that fetch nothing.
        var origin = ""
        var attempts = 0
        var deaths = 0
        /// The end of its lease's request, if that may go beyond the chunk.
        var reach: Int64?
        /// Whether its request was made beside others that reach at least to its end.
        var isPiece = false
        /// Whether it is requested on its own, whatever runs beside it.
        var isPlain = false
        /// Whether its lease was given back a part of the file.
        var hasRegained = false
        var status = Status.ready
        var lease: Lease? {
            if case .leased(let lease) = status { lease } else { nil }
        }

        /// Resets the state of the request, which ends with the lease.
        mutating func forgetRequest() {
            (reach, isPiece, isPlain, hasRegained) = (nil, false, false, false)
        }

        /// Fewer bytes than this count as no progress.
        var little: Int64 { max(1, min(1_024, last.map { ($0 - resume) / 16 } ?? .max)) }

        /// Whether its lease brought bytes that the next one can resume.
        func hasProgress(in task: Task, after kind: FailureKind? = nil) -> Bool {
            durable >= resume + (kind == .tooSlow ? 65_536 : little) && task.goesOn
        }
    }

    struct Lease: Equatable {
        var session: SessionID
        var sync: Int64
        var epoch: LeaseEpoch
        /// The step in which the lease was granted.
        var grantedAt: Int
        var lane: Lane
    }

    /// A connection of a session to an origin; number 0 for leases without a connection.
    struct Lane: Hashable {
        var session: SessionID
        var number: Int64
        var origin: String?
        /// The group of the lease in the lane, for the group's cap.
        var group: String

        /// The lane's identity, whichever group uses it.
        var connection: [Int64] { [session.rawValue, number] }
    }

    struct Session {
        var sequence: Int64 = 0
        var isExpired = false
        var isDraining = false
        var isParked = false
    }

    /// An origin's state.
    struct Origin {
        var isParked = false
        /// Its halved allowance, the minutes since, and the step in which it was halved.
        var learned: Int?
        var minutes = 0
        var limitedAt = 0
        /// The step of its last refusal that may be a limit.
        var refusedAt = 0
        /// Whether it has served bytes in this step.
        var hasServed = false
        /// The number of final refusals, by status.
        var refusesWith: [Int: Int] = [:]
    }

    /// A task's group and key.
    struct Place: Hashable {
        var group: String
        var key: String
    }

    /// Leftovers of a task to be deleted.
    struct Leftover: Hashable {
        var task: TaskID
        var version: Int
        /// Whether the file at the task's path is deleted too, so that no other file may be put there meanwhile (I17).
        var takesFile: Bool

        /// The leftovers that a purge lease deletes.
        init(_ lease: GrantedLease) {
            self.init(task: lease.task, version: Int(lease.version), takesFile: !lease.path.isEmpty)
        }

        init(task: TaskID, version: Int, takesFile: Bool) {
            self.task = task
            self.version = version
            self.takesFile = takesFile
        }
    }

    /// A lease that was taken from a session that may still be writing.
    struct Holdout {
        var session: SessionID
        var sync: Int64
        var task: TaskID
        var lane: Lane
        /// Whether it may still put the task's file in place.
        var mayPlace = false
    }

    /// Rare situations that the histories must produce, since otherwise the comparison proves nothing about them.
    enum Rare: String, CaseIterable {
        /// A mirror took a chunk from another source, either untouched or with bytes of that source.
        case pulled, taken
        /// An origin's allowance was halved; it refused again within the same burst; it was granted more than the halved allowance. A session without
        /// room had a slot to spare.
        case halved, echoed, grown, spared
        /// A fresh URL was asked for; it was asked for only once; a refusal came late; the resolver answered; it never answered.
        case asked, askedOnce, late, answered, unanswered
        /// A mirror was dropped for a version.
        case left
        /// After a wrong digest the same source was asked, or the next.
        case again, elsewhere
        /// A file with a pending pause had to be fetched again; a purge waited for a writer.
        case stayedPaused, heldBack
        /// A group was reopened, failed at its deadline, had leases recalled, or was released from waiting.
        case reopened, expired, recalled, released
        /// A lease was put into an existing lane.
        case queued
        /// A refused chunk went back to the lease from which it was cut, alone or with others; it was requested once more; a holder
        /// ended its chunk before it heard of the part given back.
        case regained, regainedMore, askedAgain, ended
    }

    let policy: Store.Policy
    var seen: Set<Rare> = []
    var groups: [String: Group] = [:]
    var sessions: [SessionID: Session] = [:]
    var origins: [String: Origin] = [:]
    /// The pending purges.
    var purges: [Leftover: Chunk] = [:]
    /// The leases under which a session may still be writing, by epoch.
    var holdouts: [LeaseEpoch: Holdout] = [:]
    var events: [String] = []
    var newestEpoch = LeaseEpoch(0)
    /// The tasks' groups and keys, by the store's ids.
    var places: [TaskID: Place] = [:]
    /// A counter of steps, which orders what happened.
    var step = 1

    init(policy: Store.Policy) { self.policy = policy }

    subscript(place: Place) -> Task? {
        get { groups[place.group]?.tasks[place.key] }
        set { groups[place.group]?.tasks[place.key] = newValue }
    }

    /// The number of connections that an origin may have now.
    func allowed(_ origin: String) -> Int {
        let cap = Int(policy.connectionsPerOrigin)
        guard let known = origins[origin], let learned = known.learned else { return cap }
        return known.minutes > 0 ? cap : min(cap, learned)
    }

    /// The task with the lease on one of its chunks, and the chunk's index.
    func find(_ lease: GrantedLease, by session: SessionID) -> (place: Place, index: Int)? {
        guard let place = places[lease.task], let task = self[place] else { return nil }
        let index = task.chunks.firstIndex { $0.lease?.epoch == lease.name.epoch && $0.lease?.session == session }
        return index.map { (place, $0) }
    }

    /// The origin whose budget a lease on a chunk counts against.
    func origin(of lease: GrantedLease) -> String? {
        find(lease, by: lease.session).flatMap { self[$0.place]?.chunks[$0.index].origin }
    }

    /// The task whose question the lease is on.
    func findQuestion(_ lease: GrantedLease, by session: SessionID) -> Place? {
        guard let place = places[lease.task], let held = self[place]?.question?.lease else { return nil }
        return held.epoch == lease.name.epoch && held.session == session ? place : nil
    }

    /// The purge that the lease is on.
    func findPurge(_ lease: GrantedLease, by session: SessionID) -> Leftover? {
        let leftover = Leftover(lease)
        guard let held = purges[leftover]?.lease else { return nil }
        return held.epoch == lease.name.epoch && held.session == session ? leftover : nil
    }

    /// Whether a session holds the lease.
    func isHeld(_ lease: GrantedLease, by session: SessionID) -> Bool {
        find(lease, by: session) != nil || findQuestion(lease, by: session) != nil
            || findPurge(lease, by: session) != nil
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
        guard var group = groups[name], group.state == .sealed, group.tasks.values.allSatisfy(\.state.isTerminal),
            !group.isHeld || group.desired == "cancel" || group.isOverdue && group.failsWhenOverdue
        else { return }
        if group.desired == "cancel" {
            group.state = .cancelled
        } else {
            let hasFailed =
                group.isHeld || group.isOverdue && group.failsWhenOverdue
                || group.tasks.values.contains { $0.state == .failed }
            group.state = hasFailed ? .failed : .succeeded
        }
        groups[name] = group
        say("group.\(group.state.rawValue)", Place(group: name, key: ""), generation: group.generation)
        for other in groups.keys {
            guard let on = groups[other]?.prerequisites[name]?.on, on.isSatisfied(by: group.state) else { continue }
            groups[other]?.prerequisites[name]?.isSatisfied = true
        }
    }
}
