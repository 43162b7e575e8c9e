public import MusterCore
import MusterPostgres

/// Everything that keeps a task from being done, or let it go on, as facts: what to make of them is the reader's business.
public struct ExplanationRecord: Sendable {
    /// Chunks of the task's content version by what they are; none once it has succeeded or was cancelled.
    public struct Chunks: Sendable, Hashable {
        /// On storage.
        public let done: Int64
        /// Held by a session.
        public let leased: Int64
        /// Could be leased now.
        public let ready: Int64
        /// Put off until a moment.
        public let waiting: Int64
        /// Out of reach until somebody resumes or retries.
        public let parked: Int64
        /// When the first of those that wait is due.
        public let dueAt: Timestamp?
        /// The task whose file it waits for, by group and key.
        public let awaited: Awaited?

        /// A task of any group.
        public struct Awaited: Sendable, Hashable {
            /// The name of its group.
            public let group: String
            /// Its key.
            public let key: String
        }
    }

    /// The group's part in it.
    public struct Group: Sendable, Hashable {
        /// What is observed of it.
        public let state: GroupState
        /// Whether it is paused as a whole.
        public let isPaused: Bool
        /// The most connections to origins that it may have, if it has a cap.
        public let maxConnections: Int32?
        /// Those that it has.
        public let leases: Int64
    }

    /// The live sessions that reach the task's sink.
    public struct Workers: Sendable, Hashable {
        /// All of them.
        public let reaching: Int64
        /// Those that are leaving.
        public let draining: Int64
        /// Slots without a lease of those that don't leave, and whose sink is well.
        public let freeSlots: Int64
    }

    /// A source, and how it did.
    public struct Source: Sendable {
        /// What may be fetched from it for the content version.
        public enum State: Sendable, Hashable {
            /// Anything.
            case usable
            /// Nothing any more: it was given up.
            case failed
            /// Nothing of this version: its content is another one (range contract, row 30).
            case differs
        }

        /// Its place among the task's sources, from 0.
        public let ordinal: Int32
        /// Its URL as the task was added with it.
        public let url: String
        /// Where it is fetched from now, after what the resolver said.
        public let origin: OriginRecord
        /// What may be fetched from it.
        public let state: State
        /// Failures of it.
        public let failures: Int32
        /// Bytes that came from it, if there are several sources.
        public let bytes: Int64
        /// Bytes per second and connection, if there are several sources and it was used.
        public let bytesPerSecond: Int64?
        /// When the resolver last gave a fresh URL for it.
        public let resolvedAt: Timestamp?
        /// Chunks that are ready to be fetched from it.
        public let readyChunks: Int64
    }

    /// A chunk that is being worked on.
    public struct Lease: Sendable {
        /// The worker; `nil` when its session is over and the lease about to be taken back.
        public let worker: String?
        /// What is done.
        public let kind: LeaseKind
        /// The chunk's first byte.
        public let start: Int64
        /// The byte after its last, when known.
        public let end: Int64?
        /// How far it is durable.
        public let durable: Int64
        /// The URL of its source, for work that has one.
        public let source: String?
        /// Since when.
        public let grantedAt: Timestamp
        /// Whether the worker is asked to give the tail of the chunk to others.
        public let isAskedToShrink: Bool
        /// Whether another worker fetches the chunk too, and had begun with it before.
        public let isDouble: Bool
        /// When the worker was heard of last, if that is longer ago than it should be.
        public let silentSince: Timestamp?
        /// When the lease ends with its session if nothing is heard of the worker until then; `nil` when the session is over.
        public let endsAt: Timestamp?
    }

    /// A question to the group's resolver (range contract, row 21).
    public enum Question: Sendable, Hashable {
        /// A worker is asking.
        case leased
        /// Any worker may ask it.
        case ready
        /// The resolver did not answer; it is asked again then.
        case waiting(until: Timestamp)
    }

    /// One try that did not succeed, or that changed what happens.
    public struct Attempt: Sendable {
        /// When, by the database's clock.
        public let at: Timestamp
        /// The worker.
        public let worker: String?
        /// The URL of the source, as the task was added with it.
        public let source: String?
        /// The failure's kind.
        public let kind: FailureKind
        /// The status of the answer, if there was one.
        public let status: Int32?
        /// What was seen, in words.
        public let detail: String
        /// The origin's own name for the request.
        public let requestID: String?
        /// Numeric address of the peer.
        public let address: String?
        /// The byte that was asked for first.
        public let offset: Int64
        /// What followed.
        public let outcome: AttemptOutcome
    }

    /// The task.
    public let task: TaskRecord
    /// Whether nothing tells whether it is a page in the place of the file (`TaskRecord.isDoubtful`).
    public let isDoubtful: Bool
    /// When it fails if it is not done by then.
    public let deadlineAt: Timestamp?
    /// Its chunks.
    public let chunks: Chunks
    /// Its group.
    public let group: Group
    /// Who could work on it.
    public let workers: Workers
    /// The open question to the resolver, if there is one.
    public let question: Question?
    /// Who works on it.
    public let leases: [Lease]
    /// Its sources, by ordinal.
    public let sources: [Source]
    /// What was tried, the newest last.
    public let attempts: [Attempt]
    /// When all of this was so.
    public let at: Timestamp
}
