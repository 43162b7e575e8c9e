public import MusterCore

/// `GET /v1/groups/{name}/explanation`: what a group waits for, what happens next, and when it will be done.
public struct GroupExplanationDocument: Hashable, Sendable, Codable {
    /// One reason why tasks of the group don't continue, or one thing that is being done for them.
    public struct Wait: Hashable, Sendable, Codable {
        /// The reason.
        public var reason: ExplanationDocument.Reason
        /// The reason in a sentence.
        public var detail: String
        /// The number of tasks that it concerns; if their chunks were counted instead, an upper bound.
        public var tasks: Int64
        /// Whether there are more than were counted: the count stops at a hundred.
        public var more: Bool
        /// When it ends by itself, or when it first ends for a task, if it does.
        public var until: Timestamp?

        /// A wait.
        public init(
            reason: ExplanationDocument.Reason, detail: String, tasks: Int64, more: Bool = false,
            until: Timestamp? = nil
        ) {
            self.reason = reason
            self.detail = detail
            self.tasks = tasks
            self.more = more
            self.until = until
        }
    }

    /// The origin whose part of the rest takes longest.
    public struct SlowestOrigin: Hashable, Sendable, Codable {
        /// Scheme, host and port.
        public var key: String
        /// Connections of the group to it now.
        public var leases: Int64
        /// How many connections the fleet may have to it at present.
        public var allowed: Int32
        /// Bytes per second that come from it for the group.
        public var bytesPerSecond: Int64
        /// The bytes that are left to fetch from it, as far as sizes are known; `null` if that can't be found out cheaply.
        public var bytesLeft: Int64?

        /// An origin.
        public init(key: String, leases: Int64, allowed: Int32, bytesPerSecond: Int64, bytesLeft: Int64?) {
            self.key = key
            self.leases = leases
            self.allowed = allowed
            self.bytesPerSecond = bytesPerSecond
            self.bytesLeft = bytesLeft
        }

        /// Writes what is unknown as an explicit `null`.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(key, forKey: .key)
            try container.encode(leases, forKey: .leases)
            try container.encode(allowed, forKey: .allowed)
            try container.encode(bytesPerSecond, forKey: .bytesPerSecond)
            try container.encode(bytesLeft, forKey: .bytesLeft)
        }
    }

    /// When the group will be done, or why that is unknown.
    public struct Estimate: Hashable, Sendable, Codable {
        /// Seconds from `at`; `null` if they are unknown.
        public var seconds: Int64?
        /// The time before which it can't be done.
        public var earliest: Timestamp?
        /// The time by which it ends in any case, since unfinished tasks fail at its deadline; `null` if it has no such deadline.
        public var latest: Timestamp?
        /// What the estimate rests on, or why there is none.
        public var because: String

        /// An estimate.
        public init(seconds: Int64?, earliest: Timestamp? = nil, latest: Timestamp? = nil, because: String) {
            self.seconds = seconds
            self.earliest = earliest
            self.latest = latest
            self.because = because
        }

        /// Writes unknown values as an explicit `null`.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(seconds, forKey: .seconds)
            try container.encode(earliest, forKey: .earliest)
            try container.encode(latest, forKey: .latest)
            try container.encode(because, forKey: .because)
        }
    }

    /// The group itself.
    public var group: GroupDocument
    /// One sentence: what the group waits for above all, or how it ended.
    public var summary: String
    /// One sentence: what happens next, and when; absent when nothing will happen.
    public var next: String?
    /// Why its tasks don't continue, the most important reason first.
    public var waits: [Wait]
    /// The origin that will be done last; absent when nothing is left to fetch, or while all of it waits.
    public var slowestOrigin: SlowestOrigin?
    /// What has to happen in sequence before the group ends, as sentences: first the groups that it waits for, then the last of its own
    /// work.
    public var criticalPath: [String]
    /// When it will be done.
    public var eta: Estimate
    /// Its files that may be pages in place of the files; absent when there are none.
    public var doubtful: DoubtfulFiles?
    /// The time for which all of this is stated, by the database's clock.
    public var at: Timestamp

    /// An explanation.
    public init(
        group: GroupDocument, summary: String, next: String?, waits: [Wait], slowestOrigin: SlowestOrigin?,
        criticalPath: [String], eta: Estimate, doubtful: DoubtfulFiles? = nil, at: Timestamp
    ) {
        self.group = group
        self.summary = summary
        self.next = next
        self.waits = waits
        self.slowestOrigin = slowestOrigin
        self.criticalPath = criticalPath
        self.eta = eta
        self.doubtful = doubtful
        self.at = at
    }
}
