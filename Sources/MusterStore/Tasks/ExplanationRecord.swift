public import MusterCore
import MusterPostgres

/// The facts that keep a task from being done, or let it go on. The reader interprets them.
public struct ExplanationRecord: Sendable {
    /// Counts of the chunks of the task's content version, by state; all 0 once the task has succeeded or was cancelled.
    public struct Chunks: Sendable, Hashable {
        /// Chunks that are durable to their end.
        public let done: Int64
        /// Chunks held by a session.
        public let leased: Int64
        /// Chunks that could be leased now.
        public let ready: Int64
        /// Chunks put off until a time.
        public let waiting: Int64
        /// Chunks that can't be leased until the task is resumed or retried.
        public let parked: Int64
        /// When the first of the waiting chunks is due.
        public let dueAt: Timestamp?
        /// The task whose file this task waits for.
        public let awaited: Awaited?

        /// A task of any group.
        public struct Awaited: Sendable, Hashable {
            /// The name of its group.
            public let group: String
            /// Its key.
            public let key: String
        }
    }

    /// The facts about the task's group.
    public struct Group: Sendable, Hashable {
        /// Its observed state.
        public let state: GroupState
        /// Whether it is paused as a whole.
        public let isPaused: Bool
        /// The cap on its connections to origins; `nil` for no cap.
        public let maxConnections: Int32?
        /// The connections to origins that it has now.
        public let leases: Int64
    }

    /// The live sessions that reach the task's sink.
    public struct Workers: Sendable, Hashable {
        /// The number of these sessions.
        public let reaching: Int64
        /// Sessions that are leaving.
        public let draining: Int64
        /// Slots without a lease, of sessions that are not leaving and whose sink is in order.
        public let freeSlots: Int64
    }

    /// A source, and what has come of it so far.
    public struct Source: Sendable {
        /// What may be fetched from it for the content version.
        public enum State: Sendable, Hashable {
            /// Any chunk.
            case usable
            /// No chunk: the source was given up.
            case failed
            /// No chunk of this version: the source has other content (range contract, row 30).
            case differs
        }

        /// Its place among the task's sources, from 0.
        public let ordinal: Int32
        /// Its URL, as given when the task was added.
        public let url: String
        /// The origin that it is fetched from now, after any answer of the resolver.
        public let origin: OriginRecord
        /// What may be fetched from it.
        public let state: State
        /// The number of its failures.
        public let failures: Int32
        /// Bytes that came from it; counted only if the task has several sources.
        public let bytes: Int64
        /// Bytes per second and connection; `nil` unless the task has several sources and this one was used.
        public let bytesPerSecond: Int64?
        /// When the resolver last gave a fresh URL for it.
        public let resolvedAt: Timestamp?
        /// Chunks that are ready to be fetched from it.
        public let readyChunks: Int64
    }

    /// A lease of the task.
    public struct Lease: Sendable {
        /// The worker; `nil` if its session is over and the lease is about to be taken back.
        public let worker: String?
        /// The kind of work.
        public let kind: LeaseKind
        /// The chunk's first byte.
        public let start: Int64
        /// The end of the chunk (exclusive), if known.
        public let end: Int64?
        /// The durable offset.
        public let durable: Int64
        /// The URL of its source; `nil` for work without a source.
        public let source: String?
        /// When the lease was granted.
        public let grantedAt: Timestamp
        /// Whether the worker is asked to give the tail of the chunk to other workers.
        public let isAskedToShrink: Bool
        /// When the coordinator last heard from the worker, if its syncs are overdue.
        public let silentSince: Timestamp?
        /// When the lease ends with its session, unless the worker syncs before; `nil` if the session is over.
        public let endsAt: Timestamp?
    }

    /// A question to the group's resolver (range contract, row 21).
    public enum Question: Sendable, Hashable {
        /// A worker is asking.
        case leased
        /// Any worker may ask the resolver.
        case ready
        /// The resolver did not answer. It is asked again at this time.
        case waiting(until: Timestamp)
    }

    /// A try that failed, or that changed how the task goes on.
    public struct Attempt: Sendable {
        /// The time by the database's clock.
        public let at: Timestamp
        /// The worker.
        public let worker: String?
        /// The URL of the source, as given when the task was added.
        public let source: String?
        /// The failure's kind.
        public let kind: FailureKind
        /// The status of the answer, if there was one.
        public let status: Int32?
        /// What was seen, in words.
        public let detail: String
        /// The origin's own name for the request.
        public let requestID: String?
        /// The numeric address of the peer.
        public let address: String?
        /// The first byte that was requested.
        public let offset: Int64
        /// What the coordinator did then.
        public let outcome: AttemptOutcome
    }

    /// The task.
    public let task: TaskRecord
    /// Whether the stored content may be a page in the place of the file, and nothing tells (`TaskRecord.isDoubtful`).
    public let isDoubtful: Bool
    /// When the task fails unless it is done; `nil` if it has no deadline.
    public let deadlineAt: Timestamp?
    /// Its chunks.
    public let chunks: Chunks
    /// Its group.
    public let group: Group
    /// The sessions that could work on it.
    public let workers: Workers
    /// The open question to the resolver, if there is one.
    public let question: Question?
    /// Its present leases.
    public let leases: [Lease]
    /// Its sources, by ordinal.
    public let sources: [Source]
    /// What was tried, the newest last.
    public let attempts: [Attempt]
    /// The time of these facts, by the database's clock.
    public let at: Timestamp
}
