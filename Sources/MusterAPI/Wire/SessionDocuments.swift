public import MusterCore

/// The body of `POST /v1/sessions`: one incarnation of a worker introduces itself.
public struct SessionRequest: Hashable, Sendable, Codable {
    /// The worker's name; a restarted worker comes with the same name and gets a new session.
    public var name: String
    /// The sinks that it reaches.
    public var sinks: [String]
    /// Which directory each of them is, by what the directory says of itself (adr/0034); a sink is missing that could not be read.
    public var marks: [String: String]?
    /// The sinks whose directory takes the place of another one for good, as the operator says.
    public var replaced: [String]?
    /// How many transfers it runs at once.
    public var slots: Int
    /// The version of its program.
    public var version: String
    /// Labels of its operator's choosing.
    public var labels: [String: String]
    /// The rate that the worker keeps to by itself, in bytes per second, if it does; only shown.
    public var bytesPerSecond: Int64?
    /// The session that the same process had before, if it had one: what that was told holds for it still.
    public var previous: SessionID?

    /// An introduction.
    public init(
        name: String, sinks: [String], slots: Int, version: String, labels: [String: String] = [:],
        bytesPerSecond: Int64? = nil, previous: SessionID? = nil
    ) {
        self.name = name
        self.sinks = sinks
        self.slots = slots
        self.version = version
        self.labels = labels
        self.bytesPerSecond = bytesPerSecond
        self.previous = previous
    }
}

/// The answer: the session, and how long it lives without a sync.
public struct SessionDocument: Hashable, Sendable, Codable {
    /// The session.
    public var id: SessionID
    /// Its time to live, in milliseconds.
    public var ttlMilliseconds: Int64
    /// The database whose tasks the worker serves, by a UUID: files are marked with it (adr/0014), and what Muster has below `.muster` is
    /// beneath it. Without it the session can begin in no sink.
    public var installation: String?
    /// Which directory each sink has to be, by what that says of itself: the session begins in no other (adr/0034). A sink that is missing is known to nobody
    /// yet: it takes another session that names its mark.
    public var marks: [String: String]?

    /// An answer.
    public init(
        id: SessionID, ttlMilliseconds: Int64, installation: String? = nil, marks: [String: String]? = nil
    ) {
        self.id = id
        self.ttlMilliseconds = ttlMilliseconds
        self.installation = installation
        self.marks = marks
    }
}

/// The body of `POST /v1/sessions/{id}/sync`; `docs/protocol.md` tells the rules.
public struct SyncRequest: Hashable, Sendable, Codable {
    /// Counts this session's syncs from 1; a later one supersedes an earlier one that still waits.
    public var sequence: Int64
    /// Every sync up to this one has been answered or given up; what was granted in them is in `held` or was never received.
    public var settled: Int64
    /// News of leases.
    public var reports: [Report]
    /// Every lease that the worker holds or that a report not yet acknowledged is about.
    public var held: [LeaseName]
    /// How many more transfers it can begin now.
    public var room: Int
    /// How many leases it takes besides, to have them wait in its lanes (`docs/protocol.md`); none when absent.
    public var ahead: Int?
    /// How long it is willing to wait for work, in milliseconds; a sync with reports is answered at once.
    public var waitMilliseconds: Int64
    /// Its sinks.
    public var sinks: [SinkStatus]
    /// Bytes received since the last settled sync, for the display of speeds.
    public var receivedBytes: Int64
    /// What was used of byte budgets since the last settled sync; absent when nothing was.
    public var traffic: [Traffic]?
    /// Sessions that this worker has revoked since its last sync, each in a sink: no lease has to name them any more.
    public var revoked: [RevokedSession]?

    /// A sync.
    public init(
        sequence: Int64, settled: Int64, reports: [Report] = [], held: [LeaseName] = [], room: Int = 0,
        ahead: Int? = nil, waitMilliseconds: Int64 = 0, sinks: [SinkStatus] = [], receivedBytes: Int64 = 0,
        traffic: [Traffic]? = nil
    ) {
        self.sequence = sequence
        self.settled = settled
        self.reports = reports
        self.held = held
        self.room = room
        self.ahead = ahead
        self.waitMilliseconds = waitMilliseconds
        self.sinks = sinks
        self.receivedBytes = receivedBytes
        self.traffic = traffic
    }
}

/// A session that was revoked in a sink: nothing that it was about to do there takes effect any more.
public struct RevokedSession: Hashable, Sendable, Codable {
    /// The sink.
    public var sink: String
    /// The session.
    public var session: SessionID

    /// A revoked session.
    public init(sink: String, session: SessionID) {
        self.sink = sink
        self.session = session
    }
}

/// What a worker used of one byte budget.
public struct Traffic: Hashable, Sendable, Codable {
    /// The budget's name, as the answer to an earlier sync gave it.
    public var budget: String
    /// Bytes of bodies that were received under it.
    public var bytes: Int64
    /// The share of it that the worker keeps to as it sends this, in bytes per second; absent when it knows of none.
    public var bytesPerSecond: Int64?
    /// Whether a transfer had to wait for it; nobody knows when absent.
    public var isShort: Bool?

    /// Use of a budget.
    public init(budget: String, bytes: Int64, bytesPerSecond: Int64? = nil, isShort: Bool? = nil) {
        self.budget = budget
        self.bytes = bytes
        self.bytesPerSecond = bytesPerSecond
        self.isShort = isShort
    }
}

/// A worker's share of a byte budget of the fleet. All the shares of a budget together never exceed its rate.
public struct BudgetShare: Hashable, Sendable, Codable {
    /// The budget: `group:<name>`, `origin:<key>` or `fleet`.
    public var name: String
    /// How much of it is the worker's until the next answer says otherwise.
    public var bytesPerSecond: Int64

    /// A share.
    public init(name: String, bytesPerSecond: Int64) {
        self.name = name
        self.bytesPerSecond = bytesPerSecond
    }

    /// The budget of a group.
    public static func name(group: String) -> String { "group:\(group)" }
    /// The budget of an origin.
    public static func name(origin: String) -> String { "origin:\(origin)" }
    /// The budget of the whole fleet.
    public static let fleet = "fleet"
}

/// A request to give up the tail of a running chunk, or leave to keep what others are refused; the holder answers with a report `shrunk`.
public struct Shrink: Hashable, Sendable, Codable {
    /// The lease that is asked.
    public var lease: LeaseName
    /// Where the chunk shall end instead.
    public var end: Int64
    /// Whether that is further than the holder has agreed to: what lies before it was given back. A holder that has come to its end already says nothing.
    public var isFurther: Bool?
    /// Whether the lease is to be given back, and only if nothing has come of it. A holder that has had an answer says nothing.
    public var isUntouched: Bool?

    /// A request.
    public init(lease: LeaseName, end: Int64, isFurther: Bool? = nil, isUntouched: Bool? = nil) {
        self.lease = lease
        self.end = end
        self.isFurther = isFurther
        self.isUntouched = isUntouched
    }
}

/// A report that can't be stored. Its lease has failed, and is the worker's no longer.
public struct RefusedReport: Hashable, Sendable, Codable {
    /// The chunk.
    public var chunk: ChunkID
    /// The lease's epoch.
    public var epoch: LeaseEpoch
    /// What is wrong with it.
    public var reason: String

    /// A refused report.
    public init(lease: LeaseName, reason: String) {
        chunk = lease.chunk
        epoch = lease.epoch
        self.reason = reason
    }

    /// The lease that it is about.
    public var lease: LeaseName { LeaseName(chunk: chunk, epoch: epoch) }
}

/// The answer to a sync.
public struct SyncResponse: Hashable, Sendable, Codable {
    /// Leases that the worker no longer holds: it stops at once.
    public var lost: [LeaseName]
    /// Reports of this sync that can't be stored: the worker drops them and stops work on their leases, and does not repeat them.
    public var refused: [RefusedReport]
    /// Leases whose reports were not stored yet, since their group is locked by something that takes long: the worker sends them again.
    public var deferred: [LeaseName]?
    /// Running chunks whose tail others should have.
    public var shrink: [Shrink]
    /// New work.
    public var leases: [LeaseDocument]
    /// Whether the worker shall finish what it holds, take nothing more and leave.
    public var drain: Bool
    /// The session's time to live from the moment at which this sync was sent, in milliseconds.
    public var ttlMilliseconds: Int64
    /// The worker's shares of byte budgets, all of them, each time. A budget that is missing does not limit (any more), nor does
    /// any when the field is absent.
    public var budgets: [BudgetShare]?
    /// Which addresses the worker may fetch from, by this coordinator (range contract, row 39); all of them when absent.
    public var addresses: AddressGuard?

    /// An answer.
    public init(
        lost: [LeaseName] = [], refused: [RefusedReport] = [], deferred: [LeaseName]? = nil, shrink: [Shrink] = [],
        leases: [LeaseDocument] = [],
        drain: Bool = false, ttlMilliseconds: Int64, budgets: [BudgetShare]? = nil, addresses: AddressGuard? = nil
    ) {
        self.lost = lost
        self.refused = refused
        self.deferred = deferred
        self.shrink = shrink
        self.leases = leases
        self.drain = drain
        self.ttlMilliseconds = ttlMilliseconds
        self.budgets = budgets
        self.addresses = addresses
    }
}
