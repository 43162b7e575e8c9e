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
        var hasResolver = false
        var tasks: [String: Task] = [:]
        /// Whether its window is closed now.
        var isClosed = false
        /// Whether its time is over, and what follows from that.
        var isOverdue = false
        var failsWhenOverdue = true
        /// The generation in which it was last said that its time is over.
        var saidOverdue = 0
        /// Whether it waits for others, as it knows itself.
        var isHeld = false
        var prerequisites: [String: Prerequisite] = [:]

        /// Whether anything may be fetched for it.
        var mayRun: Bool { desired == "run" && !isHeld && !isClosed && !(isOverdue && failsWhenOverdue) }
    }

    /// What a group waits for, or waited for.
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
        /// Whether the version has a validator that tells it from any other.
        var isStrong = false
        var isFenced = false
        /// Whether it shall be paused as soon as it is not being put in place any more.
        var isPausing = false
        var wasStarted = false
        /// Which source taught the content version.
        var teacher: Int?
        /// Whether other sources may serve chunks of it.
        var mixes = false
        /// Whether its content had a wrong digest.
        var isClean = false
        var bytesDone: Int64 = 0
        var chunks: [Chunk]
        /// The open question to the group's resolver.
        var question: Chunk?
        var done: [(first: Int64, last: Int64)] = []

        var leases: Int { chunks.count { $0.kind == .fetch && $0.lease != nil } }
        /// Whether what has come is of use when it is asked for again.
        var goesOn: Bool { rung != .whole || size != nil && isStrong }
    }

    struct Source {
        /// Where it is fetched from now.
        var origin: String
        var isDead = false
        /// The content version that its own content is not.
        var differsIn: Int?
        /// How it is asked.
        var rung = Rung.chunks
        var failures = 0
        var bytes: Int64 = 0
        var refreshes = 0
        var refreshedBytes: Int64?
        /// The steps in which its URL was taken for expired, and a fresh one came.
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
        /// Whose budget it counts against; nothing for what fetches nothing.
        var origin = ""
        var attempts = 0
        var deaths = 0
        /// Where the request of its lease ends, if that may go beyond it.
        var reach: Int64?
        /// Whether that was made beside others that go on to its end at least.
        var isPiece = false
        /// Whether it is asked for in the ordinary way, whatever runs beside it.
        var isPlain = false
        /// Whether a part was given back to its lease.
        var hasRegained = false
        var status = Status.ready
        var lease: Lease? {
            if case .leased(let lease) = status { lease } else { nil }
        }

        /// Its lease is over, and with it the request.
        mutating func forgetRequest() {
            (reach, isPiece, isPlain, hasRegained) = (nil, false, false, false)
        }

        /// Fewer bytes are as good as none.
        var little: Int64 { max(1, min(1_024, last.map { ($0 - resume) / 16 } ?? .max)) }

        /// Whether the lease on it brought bytes that its next one can go on from.
        func hasProgress(in task: Task, after kind: FailureKind? = nil) -> Bool {
            durable >= resume + (kind == .tooSlow ? 65_536 : little) && task.goesOn
        }
    }

    struct Lease: Equatable {
        var session: SessionID
        var sync: Int64
        var epoch: LeaseEpoch
        /// The step in which it was granted.
        var grantedAt: Int
        var lane: Lane
    }

    /// A connection of a session to an origin; number 0 for work that uses none.
    struct Lane: Hashable {
        var session: SessionID
        var number: Int64
        var origin: String?
        /// The group of the lease that is in it: what its cap counts.
        var group: String

        /// The lane, whatever group uses it.
        var connection: [Int64] { [session.rawValue, number] }
    }

    struct Session {
        var sequence: Int64 = 0
        var isExpired = false
        var isDraining = false
        var isParked = false
    }

    /// What is known of an origin.
    struct Origin {
        var isParked = false
        /// What it was halved to, how many minutes ago, and in which step.
        var learned: Int?
        var minutes = 0
        var limitedAt = 0
        /// When it last refused what may be a limit.
        var refusedAt = 0
        /// Whether anything has come of it in this step.
        var hasServed = false
        /// How many files it refused for good with a status.
        var refusesWith: [Int: Int] = [:]
    }

    /// A task by its name.
    struct Place: Hashable {
        var group: String
        var key: String
    }

    /// What is to be deleted of a task.
    struct Leftover: Hashable {
        var task: TaskID
        var version: Int
        /// Whether the file at the task's path goes too, so that nothing is put there meanwhile (I17).
        var takesFile: Bool

        /// What a lease deletes.
        init(_ lease: GrantedLease) {
            self.init(task: lease.task, version: Int(lease.version), takesFile: !lease.path.isEmpty)
        }

        init(task: TaskID, version: Int, takesFile: Bool) {
            self.task = task
            self.version = version
            self.takesFile = takesFile
        }
    }

    /// A lease that was taken from a session which may still be writing.
    struct Holdout {
        var session: SessionID
        var sync: Int64
        var task: TaskID
        var lane: Lane
    }

    /// What chance must bring about, or else the comparison says nothing of it.
    enum Rare: String, CaseIterable {
        /// An origin took a chunk from another one, or went on with what another one had begun.
        case pulled, taken
        /// An origin was halved, refused once more in the same burst, or was granted more than what it was halved to.
        case halved, echoed, grown
        /// A fresh URL was asked for, asked for once only, refused late, given, or given up.
        case asked, askedOnce, late, answered, unanswered
        /// A mirror was left for a version.
        case left
        /// A wrong digest was followed by the same source, or by the next.
        case again, elsewhere
        /// A file that was to be paused had to be fetched again; a deletion waited for a writer.
        case stayedPaused, heldBack
        /// A group was reopened, failed by its deadline, was recalled, and let others begin.
        case reopened, expired, recalled, released
        /// A lease was put into a lane that was there already.
        case queued
        /// A refused chunk went back to the lease that it was cut off, alone or with others, or was asked for once more; a holder had come to its end
        /// before it heard of that.
        case regained, regainedMore, askedAgain, ended
    }

    let policy: Store.Policy
    var seen: Set<Rare> = []
    var groups: [String: Group] = [:]
    var sessions: [SessionID: Session] = [:]
    var origins: [String: Origin] = [:]
    /// What waits to be deleted.
    var purges: [Leftover: Chunk] = [:]
    /// Who may still be writing under which lease.
    var holdouts: [LeaseEpoch: Holdout] = [:]
    var events: [String] = []
    var newestEpoch = LeaseEpoch(0)
    /// The tasks' names by the store's ids.
    var places: [TaskID: Place] = [:]
    /// Counts what happened, for what came before what.
    var step = 1

    init(policy: Store.Policy) { self.policy = policy }

    subscript(place: Place) -> Task? {
        get { groups[place.group]?.tasks[place.key] }
        set { groups[place.group]?.tasks[place.key] = newValue }
    }

    /// How many leases an origin may have now.
    func allowed(_ origin: String) -> Int {
        let cap = Int(policy.connectionsPerOrigin)
        guard let known = origins[origin], let learned = known.learned else { return cap }
        return known.minutes > 0 ? cap : min(cap, learned)
    }

    /// The task that has a lease on one of its chunks, and the chunk's place in it.
    func find(_ lease: GrantedLease, by session: SessionID) -> (place: Place, index: Int)? {
        guard let place = places[lease.task], let task = self[place] else { return nil }
        let index = task.chunks.firstIndex { $0.lease?.epoch == lease.name.epoch && $0.lease?.session == session }
        return index.map { (place, $0) }
    }

    /// Whose budget a lease on a chunk counts against.
    func origin(of lease: GrantedLease) -> String? {
        find(lease, by: lease.session).flatMap { self[$0.place]?.chunks[$0.index].origin }
    }

    /// The task that has a lease as its question.
    func findQuestion(_ lease: GrantedLease, by session: SessionID) -> Place? {
        guard let place = places[lease.task], let held = self[place]?.question?.lease else { return nil }
        return held.epoch == lease.name.epoch && held.session == session ? place : nil
    }

    /// What a lease deletes.
    func findPurge(_ lease: GrantedLease, by session: SessionID) -> Leftover? {
        let leftover = Leftover(lease)
        guard let held = purges[leftover]?.lease else { return nil }
        return held.epoch == lease.name.epoch && held.session == session ? leftover : nil
    }

    /// Whether a lease is a session's.
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
