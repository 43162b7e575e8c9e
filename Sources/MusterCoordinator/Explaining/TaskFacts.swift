import MusterAPI
import MusterCore
import MusterStore

/// The facts that explain a task, at one moment of the database's clock. `Explanation` draws the conclusions.
struct TaskFacts: Sendable {
    /// An origin that chunks of the task wait for.
    struct Origin: Sendable, Hashable {
        /// Scheme, host and port.
        var key: String
        /// Nothing is leased on it before this moment, if it is in the future.
        var pausedUntil: Timestamp?
        /// Whether the origin asked for the pause itself, so that one connection tries it sooner.
        var isTried = false
        /// Connections that workers may use to it now.
        var leases: Int64
        /// How many connections there may be.
        var allowed: Int32
        /// Why `allowed` is less than its cap, if it is.
        var limit: OriginRecord.Limit?
    }

    /// A worker that has been silent for longer than it should be.
    struct SilentWorker: Sendable, Hashable {
        /// Its name.
        var name: String
        /// When it was last seen.
        var since: Timestamp
        /// When its session counts as gone and its leases end, if it stays silent.
        var endsAt: Timestamp?
        /// Why its reports can't be stored, if that is so.
        var databaseTrouble: String?
    }

    /// The live sessions that reach the task's sink and are not draining.
    struct Workers: Sendable, Hashable {
        /// How many there are.
        var reaching: Int64
        /// Whether the sink is in trouble at all of these sessions that are not silent.
        var isSinkParked = false
        /// The trouble, as one of these sessions reported it.
        var parkedDetail: String?
        /// Transfers that the other sessions could take.
        var freeSlots: Int64
        /// The silent workers that hold leases of the group, or all workers if `areAllSilent`; the longest silence first.
        var silent: [SilentWorker] = []
        /// Whether there are sessions, and all of them are silent.
        var areAllSilent = false
        /// The state of the workers for the sink that belong to the coordinator's own process.
        var own = OwnProcess.Workers.none
    }

    /// The state of a question to the resolver.
    enum Question: Sendable, Hashable {
        /// Nothing is asked.
        case none
        /// A worker will be told to ask; after a failed answer not before the moment.
        case due(Timestamp?)
        /// A worker is asking.
        case asked(worker: String, since: Timestamp)
    }

    /// The task.
    var task: TaskDocument
    /// Its group.
    var group: String
    /// Whether the whole group is paused.
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
    /// The leases under which workers work on it.
    var work: [ExplanationDocument.Work]
    /// How many chunks are to give their tails to others, since their holders are slow.
    var shrinking = 0
    /// Its sources.
    var sources: [ExplanationDocument.Source]
    /// The tries, the newest last.
    var attempts: [ExplanationDocument.Attempt]
    /// Whether it has succeeded, but its file may be a page in place of the wanted one: an earlier try refused such a page, and
    /// no size, digest or validator tells.
    var isDoubtful = false
    /// When the first of its waiting chunks is due.
    var nextDue: Timestamp?
    /// The task whose file its chunk waits for, since both files are the same: its group and its key.
    var awaited: (group: String, key: String)?
    /// The question to the resolver.
    var question: Question
    /// The origins that its chunks wait for; none if they wait to be put in place.
    var origins: [Origin]
    /// Leases of the group.
    var groupLeases: Int64
    /// How many leases the group may have.
    var groupCap: Int32?
    /// The workers that could do the work.
    var workers: Workers
    /// When it fails if it is not done by then.
    var deadlineAt: Timestamp?
    /// The moment of these facts.
    var at: Timestamp
}
