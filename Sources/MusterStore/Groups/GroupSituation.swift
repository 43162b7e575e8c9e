public import MusterCore

/// What keeps a group from being done, or lets it go on, besides what its own row says. Items are counted up to a limit, so
/// that the query costs the same for any group.
public struct GroupSituation: Sendable {
    /// The most chunks, origins or groups that are counted. A higher count only says that there are more.
    public static let most: Int64 = 100

    /// The group's present leases; the first 1,000 only.
    public struct Leases: Hashable, Sendable {
        /// Connections over which its chunks are fetched.
        public var connections: Int64 = 0
        /// The number of files being verified and put in place.
        public var finalizing: Int64 = 0
        /// The number of questions to the resolver that workers are asking.
        public var asking: Int64 = 0
    }

    /// The group's chunks that are put off; `most` + 1 of them are counted.
    public struct PutOff: Hashable, Sendable {
        /// The number of chunks that wait for another try.
        public var fetching: Int64 = 0
        /// The number of files that wait to be put in place.
        public var finalizing: Int64 = 0
        /// The number of questions to the resolver that wait to be asked again.
        public var asking: Int64 = 0
        /// The number of chunks that wait for another task's file with the same content.
        public var awaiting: Int64 = 0
        /// The first of these tasks.
        public var awaited: AwaitedTask?
        /// When the first of all these is due.
        public var dueAt: Timestamp?
    }

    /// An origin on which the group has leases, or could get them.
    public struct Origin: Sendable {
        /// The origin, with the connections of all groups to it.
        public var origin: OriginRecord
        /// The number of the group's connections to it.
        public var connections: Int64
        /// Bytes per second under the group's leases on it, each since its grant.
        public var bytesPerSecond: Int64
        /// Bytes still to come under these leases, as far as known.
        public var bytesLeft: Int64
        /// The number of the group's chunks that could be leased on it now, up to `most` + 1.
        public var readyChunks: Int64
        /// Bytes still to come from it under these leases and for these ready chunks, including the rest of their tasks as
        /// far as sizes are known; `nil` if there are more of them than were counted. Chunks that are put off or paused are
        /// not included.
        public var bytesLeftInAll: Int64?
    }

    /// The byte rate of the whole fleet.
    public struct Fleet: Hashable, Sendable {
        /// The most bytes per second that all workers may fetch together.
        public var bytesPerSecondLimit: Int64
        /// Their recent speed in bytes per second, for all groups.
        public var bytesPerSecond: Int64
    }

    /// A lease that will end late.
    public struct Straggler: Hashable, Sendable {
        /// The key of its task.
        public var key: String
        /// The kind of work.
        public var kind: LeaseKind
        /// The origin that it is fetched from; empty for work that fetches nothing.
        public var origin: String
        /// The worker that holds it.
        public var worker: String?
        /// Bytes still to come under it; `nil` if unknown, or if nothing is fetched.
        public var bytesLeft: Int64?
        /// Bytes per second since it was granted.
        public var bytesPerSecond: Int64
        /// When it was granted.
        public var grantedAt: Timestamp
    }

    /// The number of failed tasks that are named.
    static let namedFailures: Int64 = 3

    /// A failed task.
    public struct Failure: Hashable, Sendable {
        /// Its key.
        public let key: String
        /// How it failed.
        public let kind: FailureKind?
        /// The status of the answer, if there was one.
        public let status: Int?
        /// What was seen.
        public let detail: String?
    }

    /// Unfinished tasks whose last try found no room in the sink.
    public struct Roomless: Hashable, Sendable {
        /// Their number among the tasks with the newest failures.
        public var tasks: Int64 = 0
        /// The first of these tasks.
        public var first: [Failure] = []
    }

    /// The most frequent last failure of tasks that are tried again.
    public struct Retried: Hashable, Sendable {
        /// The failure of the last try.
        public let failure: Failure
        /// The origin that it happened at.
        public let origin: String
    }

    /// The groups at the ends of its chain of prerequisites that have ended in another way than the groups that wait for
    /// them require.
    public var lost: [PrerequisiteRecord] = []
    /// The first of its tasks that have failed.
    public var failures: [Failure] = []
    /// Its files that may be pages in the place of files, where nothing tells (`TaskRecord.isDoubtful`); `nil` if there are
    /// none.
    public var doubtful: DoubtfulFiles?
    /// Its tasks that found no room in the sink.
    public var roomless = Roomless()
    /// The most frequent failure of its tasks that are tried again, with its origin.
    public var retried: Retried?
    /// Its present leases.
    public var leases = Leases()
    /// Its chunks that are put off.
    public var putOff = PutOff()
    /// Its origins that have leases or ready chunks of it, the slowest for the group first; `most` at most.
    public var origins: [Origin] = []
    /// The more urgent groups by the keys of the origins that they keep to themselves (`GroupQueue`).
    public var urgent: [String: UrgentGroups] = [:]
    /// The more urgent groups that take every slot that comes free (`GroupQueue`).
    public var urgentForSlots: UrgentGroups?
    /// The sessions that could work on it; `nil` if only the group's row was read.
    public var workers: WorkerCounts?
    /// The fleet's rate; `nil` if it is not limited.
    public var fleet: Fleet?
    /// The leases that will end last at their present speed, up to three, the last one first.
    public var stragglers: [Straggler] = []
    /// The time of these facts, by the database's clock (I11).
    public var at: Timestamp

    /// A situation of which nothing is known but the group's own row, read at `at`.
    public init(at: Timestamp) {
        self.at = at
    }
}
