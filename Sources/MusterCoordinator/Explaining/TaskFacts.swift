import MusterAPI
import MusterCore
import MusterStore

/// What there is to know about a task that is to be explained, at one moment of the database's clock. Facts alone: what follows
/// from them is `Explanation`.
struct TaskFacts: Sendable {
    /// An origin that chunks of the task wait for.
    struct Origin: Sendable, Hashable {
        /// Scheme, host and port.
        var key: String
        /// Nothing is leased on it before this moment, if that is still to come.
        var pausedUntil: Timestamp?
        /// Whether it asked for that itself, so that one connection tries it sooner.
        var isTried = false
        /// Connections that workers may use to it now.
        var leases: Int64
        /// How many there may be.
        var allowed: Int32
        /// Why these are fewer than its cap, if they are.
        var limit: OriginRecord.Limit?
    }

    /// A worker that has not been heard of for longer than it should be.
    struct SilentWorker: Sendable, Hashable {
        /// Its name.
        var name: String
        /// When it was heard of last.
        var since: Timestamp
        /// When it counts as gone, and its leases end, if nothing is heard of it until then.
        var endsAt: Timestamp?
        /// Why nothing that it reports can be stored, if that is so.
        var databaseTrouble: String?
    }

    /// The sessions that live, reach the task's sink and are not about to leave.
    struct Workers: Sendable, Hashable {
        /// How many there are.
        var reaching: Int64
        /// Whether the sink is in trouble at all of those that have been heard of.
        var isSinkParked = false
        /// What one of these said of it.
        var parkedDetail: String?
        /// Transfers that the others could take.
        var freeSlots: Int64
        /// Those that hold something of the group, or all if `areAllSilent`, and have not been heard of; the longest first.
        var silent: [SilentWorker] = []
        /// Whether there are some, and none of them has been heard of.
        var areAllSilent = false
        /// What the coordinator's own process has of workers for the sink.
        var own = OwnProcess.Workers.none
    }

    /// What becomes of a question to the resolver.
    enum Question: Sendable, Hashable {
        /// Nothing is asked.
        case none
        /// Somebody will be sent to ask; after a failed answer not before the moment.
        case due(Timestamp?)
        /// A worker is asking.
        case asked(worker: String, since: Timestamp)
    }

    /// The task.
    var task: TaskDocument
    /// Its group.
    var group: String
    /// Whether the whole group was told to wait.
    var isGroupPaused: Bool
    /// The groups that its group still waits for.
    var prerequisites: [String] = []
    /// When its group may run.
    var window = GroupFacts.Window.always
    /// The most bytes per second that its group may have now.
    var bytesPerSecondAllowed: Int64?
    /// Bytes per second of its group lately.
    var groupBytesPerSecond: Int64 = 0
    /// The sink.
    var sink: String
    /// Its chunks.
    var chunks: ExplanationDocument.Chunks
    /// Who works on it.
    var work: [ExplanationDocument.Work]
    /// How many chunks are to give their tails to others, since their holders are slow.
    var shrinking = 0
    /// How many chunks are fetched by two workers.
    var doubled = 0
    /// Its sources.
    var sources: [ExplanationDocument.Source]
    /// What was tried, the newest last.
    var attempts: [ExplanationDocument.Attempt]
    /// Whether it has succeeded, and nothing tells whether it is a page in the place of the file.
    var isDoubtful = false
    /// When the first of its waiting chunks is due.
    var nextDue: Timestamp?
    /// The task whose file its chunk waits for, since that is the same: its group and its key.
    var awaited: (group: String, key: String)?
    /// The question to the resolver.
    var question: Question
    /// The origins that its chunks wait for; none if they wait to be put in place.
    var origins: [Origin]
    /// Leases of the group.
    var groupLeases: Int64
    /// How many it may have.
    var groupCap: Int32?
    /// Who could do the work.
    var workers: Workers
    /// When it fails if it is not done by then.
    var deadlineAt: Timestamp?
    /// When all of this was so.
    var at: Timestamp
}
