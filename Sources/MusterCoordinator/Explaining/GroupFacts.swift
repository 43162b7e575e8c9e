import MusterAPI
import MusterCore
import MusterStore

/// What there is to know about a group that is to be explained, at one moment of the database's clock. Facts alone: what follows
/// from them is `GroupExplanation`. Counts stop at a bound, so that asking costs the same for every size of a group.
struct GroupFacts: Sendable {
    /// How many chunks there are, counted up to a bound.
    struct Count: Sendable, Hashable {
        /// Those that were counted.
        var number: Int64
        /// Whether there are more.
        var more: Bool

        /// None.
        static let none = Count(number: 0, more: false)
    }

    /// An origin that something of the group is fetched from, or could be.
    struct Origin: Sendable, Hashable {
        /// Scheme, host and port.
        var key: String
        /// Nothing is leased on it before this moment, if that is still to come.
        var pausedUntil: Timestamp?
        /// Whether it asked for that itself, so that one connection tries it sooner.
        var isTried = false
        /// Leases of all groups on it now.
        var leases: Int64
        /// How many leases there may be.
        var allowed: Int32
        /// Why these are fewer than its cap, if they are.
        var limit: OriginRecord.Limit?
        /// Bytes per second that came from it lately, for all groups.
        var bytesPerSecond: Int64
        /// The most bytes per second that the fleet may take from it.
        var bytesPerSecondLimit: Int64?
        /// Leases of this group on it now.
        var own: Int64
        /// Bytes per second of these.
        var ownBytesPerSecond: Int64
        /// Bytes that are to come under these.
        var ownBytesLeft: Int64
        /// Chunks that could be leased from it.
        var ready: Count
        /// What is left to fetch from it in all, but for what is put off, paused or of unknown size; `nil` when nobody counted that.
        var bytesLeft: Int64?
    }

    /// A lease that ends late.
    struct Straggler: Sendable, Hashable {
        /// The key of its task.
        var key: String
        /// Where it is fetched from.
        var origin: String
        /// Who holds it.
        var worker: String?
        /// The bytes that are to come under it, if that is known.
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
        /// What has to become of it.
        var on: PrerequisiteCondition
        /// What is observed of it.
        var state: GroupState
    }

    /// The rate of the whole fleet, and what it has of that.
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
    /// Whether the whole group was told to wait.
    var isPaused: Bool
    /// The groups that it still waits for.
    var prerequisites: [Prerequisite]
    /// The groups at the ends of its chain that have ended otherwise than those wish that wait for them.
    var lost: [Prerequisite] = []
    /// The first of its tasks that have failed, each with why.
    var failures: [(key: String, reason: String)] = []
    /// Its files of which nothing tells whether they are pages in the place of files.
    var doubtful: GroupExplanationDocument.Doubtful?
    /// How many of its tasks find no room in the sink.
    var roomlessTasks: Int64 = 0
    /// The first of these, each with what it lacks.
    var roomless: [(key: String, reason: String)] = []
    /// What most of its tasks that are tried again failed with, and where.
    var retried: String?
    /// When it may run.
    var window: Window
    /// The most bytes per second that it may have now.
    var bytesPerSecondAllowed: Int64?
    /// Leases on its origins.
    var connections: Int64
    /// Questions to its resolver that somebody asks, or is to ask again.
    var questions: Int64
    /// Files that somebody verifies and puts in place.
    var placing: Int64
    /// What is put off.
    var putOff: PutOff
    /// Its origins, as far as they were looked at.
    var origins: [Origin]
    /// Whether there are origins that were not looked at.
    var hasMoreOrigins: Bool
    /// The lease that will end last as things go.
    var straggler: Straggler?
    /// Who could do the work.
    var workers: TaskFacts.Workers
    /// The fleet, where its rate is limited.
    var fleet: Fleet?
    /// When all of this was so.
    var at: Timestamp

    /// Tasks that are not finished.
    var unfinished: Int64 {
        group.tasks.queued + group.tasks.active + group.tasks.paused + group.tasks.finalizing
    }

    /// What is left to fetch, as far as sizes are known.
    var rest: Int64 { max(0, group.bytes.total - group.bytes.done) }

    /// Whether most of an allowed rate is used: below that, something else is in the way.
    static func isUsedUp(_ allowed: Int64, by speed: Int64) -> Bool {
        speed >= allowed - allowed / 10 || comesInLumps(allowed)
    }

    /// Whether a rate is so small that a single read takes longer than speeds are remembered: it is used up whatever the speed seems to be.
    static func comesInLumps(_ allowed: Int64) -> Bool { allowed < lumpBytes / rememberedSeconds }

    /// What is read of a connection at once.
    private static let lumpBytes: Int64 = 16 << 10
    /// How long a speed is remembered (`bytes_per_second`).
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
