public import MusterCore

/// Why a group is not done, as far as the store knows. Items are counted up to a limit, so that the query costs the same
/// for any group.
public struct GroupExplanationRecord: Sendable {
    /// The most chunks, origins or groups that are counted. A higher count only says that there are more.
    public static let most: Int64 = 100

    /// The group's present leases; the first 1,000 only.
    public struct Leases: Hashable, Sendable {
        /// Connections over which its chunks are fetched.
        public let connections: Int64
        /// The number of files being verified and put in place.
        public let finalizing: Int64
        /// The number of questions to the resolver that workers are asking.
        public let asking: Int64
        /// Bytes still to come under these leases, as far as known.
        public let bytesLeft: Int64
        /// Bytes per second under these leases, each since its grant.
        public let bytesPerSecond: Int64
    }

    /// The group's chunks that are put off; `most` + 1 of them are counted.
    public struct PutOff: Hashable, Sendable {
        /// The number of chunks that wait for another try.
        public let fetching: Int64
        /// The number of files that wait to be put in place.
        public let finalizing: Int64
        /// The number of questions to the resolver that wait to be asked again.
        public let asking: Int64
        /// The number of chunks that wait for another task's file with the same content.
        public let awaiting: Int64
        /// The first of these tasks.
        public let awaited: ExplanationRecord.Chunks.Awaited?
        /// When the first of all these is due.
        public let dueAt: Timestamp?
    }

    /// An origin on which the group has leases, or could get them.
    public struct Origin: Sendable {
        /// The origin, with the leases of all groups on it.
        public let origin: OriginRecord
        /// The number of the group's connections to it.
        public let connections: Int64
        /// Bytes per second under the group's leases on it, each since its grant.
        public let bytesPerSecond: Int64
        /// Bytes still to come under these leases, as far as known.
        public let bytesLeft: Int64
        /// The number of the group's chunks that could be leased on it now, up to `most` + 1.
        public let readyChunks: Int64
        /// Bytes still to come from it under these leases and for these ready chunks, including the rest of their tasks as
        /// far as sizes are known; `nil` if there are more of them than were counted. Chunks that are put off or paused are
        /// not included.
        public let bytesLeftInAll: Int64?
    }

    /// The byte rate of the whole fleet.
    public struct Fleet: Hashable, Sendable {
        /// The most bytes per second that all workers may fetch together.
        public let bytesPerSecondLimit: Int64
        /// Their recent speed in bytes per second, for all groups.
        public let bytesPerSecond: Int64
    }

    /// A lease that will end late.
    public struct Straggler: Hashable, Sendable {
        /// The key of its task.
        public let key: String
        /// The kind of work.
        public let kind: LeaseKind
        /// The origin that it is fetched from; `nil` for work that fetches nothing.
        public let origin: String?
        /// The worker that holds it.
        public let worker: String?
        /// Bytes still to come under it; `nil` if unknown, or if nothing is fetched.
        public let bytesLeft: Int64?
        /// Bytes per second since it was granted.
        public let bytesPerSecond: Int64
        /// When it was granted.
        public let grantedAt: Timestamp
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
        public let status: Int32?
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

    /// Succeeded tasks whose content may be a page in the place of the file, where nothing tells (`TaskRecord.isDoubtful`).
    public struct Doubtful: Hashable, Sendable {
        /// How many there are.
        public var tasks: Int64 = 0
        /// The keys of the first of these tasks.
        public var keys: [String] = []
    }

    /// The most frequent last failure of tasks that are tried again.
    public struct Retried: Hashable, Sendable {
        /// The failure of the last try.
        public let failure: Failure
        /// The origin that it happened at.
        public let origin: String
    }

    /// The group, with its counts, its limits and the groups that it waits for.
    public let group: GroupRecord
    /// The groups at the ends of its chain of prerequisites that have ended in another way than the groups that wait for
    /// them require.
    public var lost: [PrerequisiteRecord] = []
    /// The first of its tasks that have failed.
    public var failures: [Failure] = []
    /// Its files that may be pages.
    public var doubtful = Doubtful()
    /// Its tasks that found no room in the sink.
    public var roomless = Roomless()
    /// The most frequent failure of its tasks that are tried again, with its origin.
    public var retried: Retried?
    /// Its present leases.
    public let leases: Leases
    /// Its chunks that are put off.
    public let putOff: PutOff
    /// Its origins that have leases or ready chunks of it, the slowest for the group first; `most` at most.
    public let origins: [Origin]
    /// The number of files that could be put in place now if a session had room for them, up to `most` + 1.
    public let readyToFinalize: Int64
    /// The sessions that could work on it.
    public let workers: ExplanationRecord.Workers
    /// The fleet's rate; `nil` if it is not limited.
    public let fleet: Fleet?
    /// The leases that will end last at their present speed, up to three, the last one first.
    public let stragglers: [Straggler]
    /// The time of these facts, by the database's clock (I11).
    public let at: Timestamp
}
