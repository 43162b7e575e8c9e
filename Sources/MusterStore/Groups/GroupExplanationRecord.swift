public import MusterCore

/// Why a group is not done, as far as the store knows. Whatever is counted one by one is counted up to a limit, so that the
/// question costs the same for any group.
public struct GroupExplanationRecord: Sendable {
    /// The most chunks, origins or groups that are counted one by one. A count beyond it says only that there are more.
    public static let most: Int64 = 100

    /// What is leased of it now; the first 1,000 leases alone.
    public struct Leases: Hashable, Sendable {
        /// Connections over which its chunks are fetched.
        public let connections: Int64
        /// Files that are being verified and put in place.
        public let finalizing: Int64
        /// Questions to the resolver that somebody asks now.
        public let asking: Int64
        /// Bytes that are to come under these leases, where that is known.
        public let bytesLeft: Int64
        /// Bytes per second of these leases, each since it was granted.
        public let bytesPerSecond: Int64
    }

    /// What has been put off; `most` + 1 chunks at the most.
    public struct PutOff: Hashable, Sendable {
        /// Chunks that wait for another try.
        public let fetching: Int64
        /// Files that wait to be put in place.
        public let finalizing: Int64
        /// Questions that wait to be asked again.
        public let asking: Int64
        /// Chunks that wait for another task's file, whose content is the same.
        public let awaiting: Int64
        /// The first of these tasks.
        public let awaited: ExplanationRecord.Chunks.Awaited?
        /// When the first of all that is due.
        public let dueAt: Timestamp?
    }

    /// An origin that something of the group is on, or could be leased on.
    public struct Origin: Sendable {
        /// The origin, with what all groups have on it.
        public let origin: OriginRecord
        /// Connections of the group to it.
        public let connections: Int64
        /// Bytes per second of these, each since it was granted.
        public let bytesPerSecond: Int64
        /// Bytes that are to come under these, where that is known.
        public let bytesLeft: Int64
        /// Chunks of the group that could be leased on it now, up to `most` + 1.
        public let readyChunks: Int64
        /// Bytes that are to come from it under these leases and for these chunks, the rest of their tasks included as far as
        /// sizes are known; `nil` when there are more of them than were counted. What is put off or paused is not in it.
        public let bytesLeftInAll: Int64?
    }

    /// The rate of the whole fleet.
    public struct Fleet: Hashable, Sendable {
        /// The most bytes per second that all workers may fetch together.
        public let bytesPerSecondLimit: Int64
        /// Bytes per second that they fetched lately, for all groups.
        public let bytesPerSecond: Int64
    }

    /// A lease that will end late.
    public struct Straggler: Hashable, Sendable {
        /// The key of its task.
        public let key: String
        /// What it is.
        public let kind: LeaseKind
        /// Where it is fetched from.
        public let origin: String?
        /// Who holds it.
        public let worker: String?
        /// The bytes that are to come under it; `nil` where that is not known, or where nothing is fetched.
        public let bytesLeft: Int64?
        /// Bytes per second since it was granted.
        public let bytesPerSecond: Int64
        /// When it was granted.
        public let grantedAt: Timestamp
    }

    /// How many failed tasks are named.
    static let namedFailures: Int64 = 3

    /// A task that has failed.
    public struct Failure: Hashable, Sendable {
        /// Its key.
        public let key: String
        /// How it failed.
        public let kind: FailureKind?
        /// The status of the answer, if there was one.
        public let status: Int32?
        /// What was seen.
        public let detail: String?
    }

    /// Unfinished tasks whose last try found no room in the sink.
    public struct Roomless: Hashable, Sendable {
        /// How many there are, of those whose failures are the newest.
        public var tasks: Int64 = 0
        /// The first of them.
        public var first: [Failure] = []
    }

    /// Files that are there, and of which nothing tells whether they are pages in the place of files.
    public struct Doubtful: Hashable, Sendable {
        /// How many there are.
        public var tasks: Int64 = 0
        /// The keys of the first of them.
        public var keys: [String] = []
    }

    /// What went wrong last with tasks that are tried again.
    public struct Retried: Hashable, Sendable {
        /// How the last try failed.
        public let failure: Failure
        /// Where.
        public let origin: String
    }

    /// The group, with its counts, its limits and the groups that it waits for.
    public let group: GroupRecord
    /// The groups at the ends of its chain that have ended otherwise than those wish that wait for them.
    public var lost: [PrerequisiteRecord] = []
    /// The first of its tasks that have failed.
    public var failures: [Failure] = []
    /// Its files that may be pages.
    public var doubtful = Doubtful()
    /// Its tasks that find no room.
    public var roomless = Roomless()
    /// What most of its tasks that are tried again failed with, and where.
    public var retried: Retried?
    /// What is leased of it.
    public let leases: Leases
    /// What of it has been put off.
    public let putOff: PutOff
    /// Its origins, those with something to do, the slowest for the group first; `most` at the most.
    public let origins: [Origin]
    /// Files that could be put in place now if somebody took them, up to `most` + 1.
    public let readyToFinalize: Int64
    /// Who could work on it.
    public let workers: ExplanationRecord.Workers
    /// The fleet, where its rate is limited.
    public let fleet: Fleet?
    /// The leases that will end last as things go, up to three, the last one first.
    public let stragglers: [Straggler]
    /// The database's clock, by which everything is told (I11).
    public let at: Timestamp
}
