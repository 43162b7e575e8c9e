public import MusterCore

/// `GET /v1/groups/{name}/explanation`: what a group waits for, what happens next, and when it will be done.
public struct GroupExplanationDocument: Hashable, Sendable, Codable {
    /// One thing that keeps tasks of the group from going on, or that is being done for them.
    public struct Wait: Hashable, Sendable, Codable {
        /// Which one.
        public var reason: ExplanationDocument.Reason
        /// The same in a sentence.
        public var detail: String
        /// How many tasks it is about; where their chunks were counted, at most so many.
        public var tasks: Int64
        /// Whether there are more of them than were counted: nothing is counted beyond a hundred.
        public var more: Bool
        /// When it ends by itself, or first ends for one of them, if it does.
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

    /// Files that are there, and of which nothing tells whether they are pages in the place of files: the origin answered with something else each time,
    /// and states nothing that tells one version from another, and no size or digest was given.
    public struct Doubtful: Hashable, Sendable, Codable {
        /// How many there are.
        public var tasks: Int64
        /// The keys of the first of them.
        public var keys: [String]

        /// Such files.
        public init(tasks: Int64, keys: [String]) {
            self.tasks = tasks
            self.keys = keys
        }
    }

    /// The origin whose share of the rest takes longest.
    public struct SlowestOrigin: Hashable, Sendable, Codable {
        /// Scheme, host and port.
        public var key: String
        /// Leases of the group on it now.
        public var leases: Int64
        /// How many leases the fleet may have on it now.
        public var allowed: Int32
        /// Bytes per second that come from it for the group.
        public var bytesPerSecond: Int64
        /// What is left to fetch from it, as far as sizes are known; `null` when nothing of that can be said cheaply.
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

    /// When the group will be done, or why that can't be said.
    public struct Estimate: Hashable, Sendable, Codable {
        /// Seconds from `at`; `null` when it can't be told.
        public var seconds: Int64?
        /// It can't be done before this moment.
        public var earliest: Timestamp?
        /// It is done by then if things go on as they are; `null` when no bound is known.
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

        /// Writes what can't be told as an explicit `null`.
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
    /// One sentence: what happens next, and when; absent when nothing will.
    public var next: String?
    /// What keeps its tasks from going on, the most important first.
    public var waits: [Wait]
    /// The origin that will be the last to be done; absent when there is nothing left to fetch, or while all of it waits.
    public var slowestOrigin: SlowestOrigin?
    /// What has to happen one after the other before the group ends, as sentences: the groups that it waits for, then what will be
    /// last of its own.
    public var criticalPath: [String]
    /// When it will be done.
    public var eta: Estimate
    /// Its files that may be pages in the place of files; absent where there are none.
    public var doubtful: Doubtful?
    /// When all of this was so, by the database's clock.
    public var at: Timestamp

    /// An explanation.
    public init(
        group: GroupDocument, summary: String, next: String?, waits: [Wait], slowestOrigin: SlowestOrigin?,
        criticalPath: [String], eta: Estimate, doubtful: Doubtful? = nil, at: Timestamp
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
