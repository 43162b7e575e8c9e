import MusterAPI
import MusterCore
import MusterStore

/// The facts that explain a group, at one moment of the database's clock. `GroupExplanation` draws the conclusions. Counts
/// stop at a bound, so that the query costs the same for every size of a group.
struct GroupFacts: Sendable {
    /// How many chunks there are, counted up to a bound.
    struct Count: Sendable, Hashable {
        /// The chunks that were counted.
        var number: Int64
        /// Whether there are more.
        var more: Bool

        /// No chunks.
        static let none = Count(number: 0, more: false)
    }

    /// An origin that chunks of the group are fetched from, or could be.
    struct Origin: Sendable, Hashable {
        /// Scheme, host and port.
        var key: String
        /// Nothing is leased on it before this moment, if it is in the future.
        var pausedUntil: Timestamp?
        /// Whether the origin asked for the pause itself, so that one connection tries it sooner.
        var isTried = false
        /// Leases of all groups on it now.
        var leases: Int64
        /// How many leases it may have.
        var allowed: Int32
        /// Why `allowed` is less than its cap, if it is.
        var limit: OriginRecord.Limit?
        /// Bytes per second that came from it lately, for all groups.
        var bytesPerSecond: Int64
        /// The most bytes per second that the fleet may take from it.
        var bytesPerSecondLimit: Int64?
        /// Leases of this group on it now.
        var own: Int64
        /// Bytes per second of these leases.
        var ownBytesPerSecond: Int64
        /// Bytes still to be fetched under these leases.
        var ownBytesLeft: Int64
        /// Chunks that could be leased from it.
        var ready: Count
        /// All bytes left to fetch from it, except those that are put off, paused or of unknown size; `nil` when not counted.
        var bytesLeft: Int64?
    }

    /// A lease that ends late.
    struct Straggler: Sendable, Hashable {
        /// The key of its task.
        var key: String
        /// Where it is fetched from.
        var origin: String
        /// The worker that holds it.
        var worker: String?
        /// The bytes still to be fetched under it, if known.
        var bytesLeft: Int64?
        /// Bytes per second since it was granted.
        var bytesPerSecond: Int64
        /// When it was granted.
        var grantedAt: Timestamp
    }

    /// A group that this one still waits for.
    struct Prerequisite: Sendable, Hashable {
        /// Its name.
        var group: String
        /// The condition that it has to meet.
        var on: PrerequisiteCondition
        /// Its current state.
        var state: GroupState
    }

    /// The rate of the whole fleet, and its recent use.
    struct Fleet: Sendable, Hashable {
        /// The most bytes per second that all workers may fetch together.
        var bytesPerSecondLimit: Int64
        /// Bytes per second that they fetched lately.
        var bytesPerSecond: Int64
    }

    /// When the group may run at all.
    enum Window: Sendable, Hashable {
        /// Always.
        case always
        /// Now, and until the moment.
        case open(until: Timestamp)
        /// Not now; from the moment on again.
        case closed(until: Timestamp?)
    }

    /// Chunks that wait: for their next try, which is not due yet, or for another task's file.
    struct PutOff: Sendable {
        /// How many there are.
        var chunks: Count
        /// How many of these wait for another task's file, whose content is the same.
        var awaiting: Int64 = 0
        /// The first of these tasks: its group and its key.
        var awaited: (group: String, key: String)?
        /// When the first of them is due.
        var firstDue: Timestamp?
    }

    /// The group.
    var group: GroupDocument
    /// Whether the whole group is paused.
    var isPaused: Bool
    /// The groups that it still waits for.
    var prerequisites: [Prerequisite]
    /// The groups at the ends of its chain that ended without meeting the condition of the groups that wait for them.
    var lost: [Prerequisite] = []
    /// The first of its failed tasks, each with the reason.
    var failures: [(key: String, reason: String)] = []
    /// Its files that may be pages in place of the wanted files; `nil` if there are none.
    var doubtful: GroupExplanationDocument.Doubtful?
    /// How many of its tasks find no room in the sink.
    var roomlessTasks: Int64 = 0
    /// The first of these tasks, each with the detail of its failure.
    var roomless: [(key: String, reason: String)] = []
    /// The most frequent failure of its tasks that are to be tried again, with the origin.
    var retried: String?
    /// When the group may run.
    var window: Window
    /// The most bytes per second that it may have now.
    var bytesPerSecondAllowed: Int64?
    /// Leases on its origins.
    var connections: Int64
    /// Questions to its resolver that a worker is asking, or that are to be asked again.
    var questions: Int64
    /// Files that workers are verifying and putting in place.
    var placing: Int64
    /// The chunks that are put off.
    var putOff: PutOff
    /// Its origins, up to a bound.
    var origins: [Origin]
    /// Whether there are more origins than that.
    var hasMoreOrigins: Bool
    /// The lease that will end last at the current speeds.
    var straggler: Straggler?
    /// The workers that could do the work.
    var workers: TaskFacts.Workers
    /// The fleet, where its rate is limited.
    var fleet: Fleet?
    /// The moment of these facts.
    var at: Timestamp

    /// Tasks that are not finished.
    var unfinished: Int64 {
        group.tasks.queued + group.tasks.active + group.tasks.paused + group.tasks.finalizing
    }

    /// The bytes left to fetch, as far as sizes are known.
    var rest: Int64 { max(0, group.bytes.total - group.bytes.done) }

    /// Whether most of an allowed rate is used: below that, something else limits the speed.
    static func isUsedUp(_ allowed: Int64, by speed: Int64) -> Bool {
        speed >= allowed - allowed / 10 || comesInLumps(allowed)
    }

    /// Whether a rate is so small that a single read takes longer than speeds are remembered. Such a rate counts as used up
    /// at every measured speed.
    static func comesInLumps(_ allowed: Int64) -> Bool { allowed < lumpBytes / rememberedSeconds }

    /// The bytes that are read from a connection at once.
    private static let lumpBytes: Int64 = 16 << 10
    /// How long a speed is remembered, in seconds (`bytes_per_second`).
    private static let rememberedSeconds: Int64 = 10
}

extension TaskFacts.Origin {
    /// The origin without what the group has on it.
    init(_ origin: GroupFacts.Origin) {
        self.init(
            key: origin.key, pausedUntil: origin.pausedUntil, isTried: origin.isTried, leases: origin.leases,
            allowed: origin.allowed,
            limit: origin.limit)
    }
}
