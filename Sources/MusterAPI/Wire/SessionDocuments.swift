public import MusterCore

/// The body of `POST /v1/sessions`: a new incarnation of a worker opens its session.
public struct SessionRequest: Hashable, Sendable, Codable {
    /// The worker's name; a restarted worker comes with the same name and gets a new session.
    public var name: String
    /// The sinks that it reaches.
    public var sinks: [String]
    /// The identity of each sink's directory, as the directory itself states it (adr/0034); a sink that could not be read is missing.
    public var marks: [String: String]?
    /// The sinks whose directory permanently replaces another directory, as the operator says.
    public var replaced: [String]?
    /// How many transfers it runs at once.
    public var slots: Int
    /// The version of its program.
    public var version: String
    /// Labels of its operator's choosing.
    public var labels: [String: String]
    /// The rate limit that the worker applies by itself, in bytes per second, if it has a limit; only shown.
    public var bytesPerSecond: Int64?
    /// The session that the same process had before, if it had a session: what that session was told still applies.
    public var previous: SessionID?

    /// A request to open a session.
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
    /// The database whose tasks the worker serves, as a UUID: files are marked with it (adr/0014), and it names Muster's own directory
    /// below `.muster`. Without it the session can begin in no sink.
    public var installation: String?
    /// The identity that each sink's directory must have: the session begins in no other directory (adr/0034). A sink that is missing here
    /// is still unknown: it needs another session that names its mark.
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

/// The body of `POST /v1/sessions/{id}/sinks`: a sink that the session was opened without, since its directory was refused.
public struct SessionSinkRequest: Hashable, Sendable, Codable {
    /// The sink's name.
    public var name: String
    /// The identity of its directory, as the directory itself states it (adr/0034); `nil` if it could not be read.
    public var mark: String?
    /// Whether the directory permanently replaces another directory, as the operator says.
    public var isReplaced: Bool?

    /// A request to add a sink to a session.
    public init(name: String, mark: String? = nil, isReplaced: Bool? = nil) {
        self.name = name
        self.mark = mark
        self.isReplaced = isReplaced
    }
}

/// The answer: the session reaches the sink from now on.
public struct SessionSinkDocument: Hashable, Sendable, Codable {
    /// The identity that the sink's directory must have; `nil` if it is still unknown.
    public var mark: String?

    /// An answer.
    public init(mark: String?) {
        self.mark = mark
    }
}

/// The body of `POST /v1/sessions/{id}/sync`; `docs/protocol.md` has the rules.
public struct SyncRequest: Hashable, Sendable, Codable {
    /// Counts this session's syncs from 1; a later one supersedes an earlier one that still waits.
    public var sequence: Int64
    /// Every sync up to this one has been answered or given up; the leases granted in them are in `held` or were never received.
    public var settled: Int64
    /// The reports on leases.
    public var reports: [Report]
    /// Every lease that the worker holds or that a report not yet acknowledged is about.
    public var held: [LeaseName]
    /// How many more transfers it can begin now.
    public var room: Int
    /// How many more leases it takes to wait in its lanes (`docs/protocol.md`); none when absent.
    public var ahead: Int?
    /// Whether it begins one more transfer, beyond its slots: a trial, or one for a group that has no connection (I19, adr/0051); absent if not.
    public var spare: Bool?
    /// How long it waits for work, in milliseconds; a sync with reports is answered at once.
    public var waitMilliseconds: Int64
    /// The states of its sinks.
    public var sinks: [SinkStatus]
    /// Bytes received since the last settled sync, for the display of speeds.
    public var receivedBytes: Int64
    /// The use of byte budgets since the last settled sync; absent when nothing was used.
    public var traffic: [Traffic]?
    /// Sessions that this worker has revoked since its last sync, each in a sink: leases no longer have to name them.
    public var revoked: [RevokedSession]?
    /// The page of a check that the worker looks at, or has looked at; absent if there is none (adr/0048).
    public var check: CheckReport?

    /// A sync.
    public init(
        sequence: Int64, settled: Int64, reports: [Report] = [], held: [LeaseName] = [], room: Int = 0,
        ahead: Int? = nil, spare: Bool? = nil, waitMilliseconds: Int64 = 0, sinks: [SinkStatus] = [],
        receivedBytes: Int64 = 0,
        traffic: [Traffic]? = nil, check: CheckReport? = nil
    ) {
        self.sequence = sequence
        self.settled = settled
        self.reports = reports
        self.held = held
        self.room = room
        self.ahead = ahead
        self.spare = spare
        self.waitMilliseconds = waitMilliseconds
        self.sinks = sinks
        self.receivedBytes = receivedBytes
        self.traffic = traffic
        self.check = check
    }
}

/// A session that was revoked in a sink: none of its pending operations there takes effect.
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

/// A worker's use of a byte budget.
public struct Traffic: Hashable, Sendable, Codable {
    /// The budget's name, from the answer to an earlier sync.
    public var budget: String
    /// Bytes of bodies that were received under it.
    public var bytes: Int64
    /// The share of it to which the worker keeps when it sends this, in bytes per second; absent if it has no share.
    public var bytesPerSecond: Int64?
    /// Whether a transfer had to wait for the budget; unknown when absent.
    public var isShort: Bool?

    /// Use of a budget.
    public init(budget: String, bytes: Int64, bytesPerSecond: Int64? = nil, isShort: Bool? = nil) {
        self.budget = budget
        self.bytes = bytes
        self.bytesPerSecond = bytesPerSecond
        self.isShort = isShort
    }
}

/// A worker's share of a byte budget of the fleet. All shares of a budget together never exceed its rate.
public struct BudgetShare: Hashable, Sendable, Codable {
    /// The budget: `group:<name>`, `origin:<key>` or `fleet`.
    public var name: String
    /// The worker's share until the next answer, in bytes per second.
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

/// A request to give up the tail of a running chunk, or a permission to keep a tail that was refused to other workers. The holder answers
/// with a report `shrunk`.
public struct Shrink: Hashable, Sendable, Codable {
    /// The lease whose holder is asked.
    public var lease: LeaseName
    /// The new end of the chunk.
    public var end: Int64
    /// Whether `end` is beyond the end to which the holder agreed: the bytes before it were given back. A holder that has already reached
    /// its end does not report.
    public var isFurther: Bool?
    /// Whether the lease is to be given back, but only if no answer has come for it. A holder that has had an answer does not report.
    public var isUntouched: Bool?

    /// A request.
    public init(lease: LeaseName, end: Int64, isFurther: Bool? = nil, isUntouched: Bool? = nil) {
        self.lease = lease
        self.end = end
        self.isFurther = isFurther
        self.isUntouched = isUntouched
    }
}

/// A report that can't be stored. Its lease has failed, and the worker no longer holds it.
public struct RefusedReport: Hashable, Sendable, Codable {
    /// The chunk.
    public var chunk: ChunkID
    /// The lease's epoch.
    public var epoch: LeaseEpoch
    /// What is wrong with the report.
    public var reason: String

    /// A refused report.
    public init(lease: LeaseName, reason: String) {
        chunk = lease.chunk
        epoch = lease.epoch
        self.reason = reason
    }

    /// The lease that the report is about.
    public var lease: LeaseName { LeaseName(chunk: chunk, epoch: epoch) }
}

/// The answer to a sync.
public struct SyncResponse: Hashable, Sendable, Codable {
    /// Leases that the worker no longer holds: it stops at once.
    public var lost: [LeaseName]
    /// Reports of this sync that can't be stored: the worker drops them, stops work on their leases, and does not repeat them.
    public var refused: [RefusedReport]
    /// Leases whose reports are not stored yet, since a long operation has locked their group: the worker sends them again.
    public var deferred: [LeaseName]?
    /// Running chunks whose tail is wanted for other workers.
    public var shrink: [Shrink]
    /// New work.
    public var leases: [LeaseDocument]
    /// Whether the worker is to finish what it holds, take nothing more and leave.
    public var drain: Bool
    /// The session's time to live from the moment at which this sync was sent, in milliseconds.
    public var ttlMilliseconds: Int64
    /// All of the worker's shares of byte budgets, in every answer. A budget that is missing does not limit (any more), and no budget does
    /// when the field is absent.
    public var budgets: [BudgetShare]?
    /// The addresses that the worker may fetch from, as this coordinator is set (range contract, row 39); all addresses when absent.
    public var addresses: AddressGuard?
    /// What the worker is to look at for a check (adr/0048); absent: nothing, so it stops looking.
    public var check: CheckOrder?

    /// An answer.
    public init(
        lost: [LeaseName] = [], refused: [RefusedReport] = [], deferred: [LeaseName]? = nil, shrink: [Shrink] = [],
        leases: [LeaseDocument] = [],
        drain: Bool = false, ttlMilliseconds: Int64, budgets: [BudgetShare]? = nil, addresses: AddressGuard? = nil,
        check: CheckOrder? = nil
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
        self.check = check
    }
}
