public import MusterCore
public import MusterPostgres

/// The database, as the verbs of the domain. It holds nothing but a pool: all state is in PostgreSQL.
///
/// Every verb is one statement or one transaction, and harmless when repeated (I10), unless its documentation says
/// otherwise. All verbs throw `PostgresError`; the methods for callers' requests also throw `Refusal`. Statements that
/// change something are run by `write`, `writeOnce`, `count`, `once` or `transaction`; each of these is told what it wakes
/// (`Wake`).
public struct Store: Sendable {
    /// The limits that are passed to the SQL functions.
    public struct Policy: Sendable, Hashable {
        /// The size of the chunk that is leased before a file's size is known, in bytes.
        public var firstChunk: Int64 = Limits.chunk.lowerBound.bytes
        /// The most connections to an origin that has no cap of its own.
        public var connectionsPerOrigin: Int32 = 8
        /// The most leases of one session.
        public var leasesPerSession: Int32 = 1_024
        /// The byte budget of the whole fleet, in bytes per second; `nil` for no budget. All coordinators of a database
        /// must be given the same value.
        public var fleetRate: Int64?
        /// Granularity of shortened chunks, in bytes: their ends are multiples of it.
        public var shrinkUnit: Int64 = 1 << 20
        /// The minimum size of a tail that is cut off a running chunk, in bytes. The holder keeps at least as much.
        public var minimumShrink: Int64 = 2 << 20
        /// The number of tasks that a verb on a whole group moves in one transaction (`adr/0015`).
        public var verbSlice: Int32 = 2_000
        /// Failures without progress after which a task fails (I12).
        public var attempts: Int32 = Limits.attempts
        /// The same limit where no connection was made, no answer came in time, or a directory is closed to the worker. A
        /// lower value tells a user who waits for one file sooner of a wrong name, of a link that hangs, or of a directory
        /// to be mended.
        public var unreachedAttempts: Int32 = Limits.attempts
        /// Whether a file for which there is no room is tried until there is room. For fleets whose user waits and is told
        /// of the lack of room.
        public var waitsForRoom = false
        /// Content versions after which a task fails.
        public var contentVersions: Int32 = Limits.contentVersions
        /// Deaths of sessions without progress after which a task counts as poison (I12).
        public var deaths: Int32 = Limits.deaths
        /// The longest wait of a chunk after its first failure. It doubles with every further failure (`backoff()` in the database).
        public var backoffBase: Duration = .seconds(1)
        /// The longest wait of a chunk after any failure.
        public var backoffMaximum: Duration = .seconds(300)

        /// The bounds of `Limits`.
        public init() {}

        /// The longest wait between two tries of a file that waits for room, so that new room is noticed soon.
        static let roomBackoff: Duration = .seconds(5)

        /// The limits as a value of the type `policy` (`Tables/0002_leasing.sql`), in the order of its fields.
        var row: SQL {
            """
            ROW(\(firstChunk), \(connectionsPerOrigin), \(leasesPerSession), \(fleetRate), \(shrinkUnit), \(minimumShrink),
                \(attempts), \(contentVersions), \(deaths), \(backoffBase.milliseconds))::policy
            """
        }

        /// The number of failures without progress after which a task fails.
        func attempts(isToldSoon: Bool) -> Int32 {
            isToldSoon ? min(unreachedAttempts, attempts) : attempts
        }
    }

    /// Why a request can't be fulfilled in the present state.
    public enum Refusal: Error, Sendable, Hashable {
        /// There is no group of this name.
        case noSuchGroup(String)
        /// There is no task of this key.
        case noSuchTask(String)
        /// There is no live worker of this name.
        case noSuchWorker(String)
        /// A worker has another directory for this sink than the live session of the worker named here; `isNamesake` says that
        /// both have one name. `place` is the sink's place in the request to open a session, from 0, if it was in one.
        case otherDirectory(sink: String, worker: String, isNamesake: Bool, place: Int?)
        /// A worker has another directory for this sink than the one that holds files of this unfinished group; `place` as
        /// before.
        case filesElsewhere(sink: String, group: String, place: Int?)
        /// The session has as many sinks as it may have.
        case tooManySinks
        /// No group and no worker has or had a sink of this name; `place` is its place in the request, from 0.
        case noSuchSink(String, place: Int)
        /// There is no check of this number, or it is no longer kept.
        case noSuchCheck(Int64)
        /// Another check is under way; `nil` if it has ended since.
        case checkUnderWay(RunningCheck?)
        /// A group of this name exists.
        case groupExists(String)
        /// Two lines mean different things by the same key.
        case duplicateKey(String, Collision)
        /// A line without a key of its own has the path of an existing task, but other URLs.
        case otherURLs(String, url: String, existing: String, line: Int64)
        /// Two lines have the same destination.
        case duplicatePath(String, Collision)
        /// The path of one line is a file, and another line needs it as a directory.
        case nestedPath(String, Collision)
        /// A live task of group `by` has this destination already. Values that are not known are `nil`, as when that task
        /// was added at the same time.
        case destinationTaken(String?, line: Int64?, by: String?)
        /// The sum of the group's task sizes overflows its counter.
        case groupTooLarge
        /// Some of the staged tasks are missing: the whole upload has to be sent again.
        case uploadIncomplete
        /// The number of the group's tasks is final.
        case groupSealed(newKey: String, line: Int64)
        /// The group has finished.
        case groupFinished(newKey: String, line: Int64)
        /// Groups would wait for each other in a cycle. The names are the path of the cycle: the group whose prerequisites
        /// were set, the groups that it would wait for, and the first group again.
        case prerequisiteCycle([String])
        /// The group named as a prerequisite does not exist.
        case noSuchPrerequisite(String)
        /// The group has finished: its prerequisites can't be changed any more.
        case prerequisitesTooLate(String)
        /// Another group still waits for this one.
        case groupInUse(String, by: String)
        /// The request's idempotency key was used by another request.
        case keyReused
        /// PostgreSQL knows no time zone of this name; `pointer` is the JSON pointer of the name in the request.
        case unknownTimeZone(String, pointer: String)

        /// Whether the refusal passes without another request, and is not kept as the answer to its own: what is asked for can
        /// be had a moment later, and a late copy of the request does no harm (adr/0040).
        public var passes: Bool { if case .checkUnderWay = self { true } else { false } }
    }

    let pool: PostgresPool
    let policy: Policy
    private let onWake: @Sendable (Wake) -> Void

    /// A store over a pool. The caller runs the pool and shuts it down.
    ///
    /// - Parameter onWake: called after each commit that other parts of the coordinator may wait for; it must not block.
    public init(
        pool: PostgresPool, policy: Policy = Policy(), onWake: @escaping @Sendable (Wake) -> Void = { _ in }
    ) {
        self.pool = pool
        self.policy = policy
        self.onWake = onWake
    }

    /// Wakes what waits for the changes that were just committed.
    func wake(_ wake: Wake) {
        if !wake.isEmpty { onWake(wake) }
    }

    /// Runs one statement that changes something, and wakes what waits for the change. The statement may be repeated, as by
    /// `query`.
    ///
    /// - Parameters:
    ///   - wake: what is woken; empty where nothing waits for the change, and for a verb that calls `wake(_:)` itself once it has read what has changed.
    ///   - limit: for a statement that may take longer than others.
    func write(_ sql: SQL, waking wake: Wake, limit: Duration? = nil) async throws -> PostgresRows {
        let rows = try await change(sql, limit: limit)
        self.wake(wake)
        return rows
    }

    /// Runs one statement that returns the number of its changes as `count`, and wakes what waits for them unless the
    /// number is 0.
    func count(_ sql: SQL, waking wake: Wake) async throws -> Int64 {
        let count: Int64 = try await change(sql)[0].decode("count")
        if count > 0 { self.wake(wake) }
        return count
    }

    /// Runs one statement that changes nothing, or is harmless when repeated. It is repeated after a deadlock or a
    /// serialization failure, and when the connection broke so that the outcome of the commit is unknown (fault F6).
    func query(_ sql: SQL) async throws -> PostgresRows {
        var tries = 0
        while true {
            do {
                return try await pool.query(sql)
            } catch let error as PostgresError where tries < 4 && (error.isRetryable || error.lostAnswer) {
                tries += 1
            }
        }
    }

    /// Runs one statement that changes something and must not be repeated when its outcome is unknown, and wakes what waits
    /// for the change.
    func writeOnce(_ sql: SQL, waking wake: Wake) async throws -> PostgresRows {
        var tries = 0
        while true {
            do {
                let rows = try await pool.query(sql)
                self.wake(wake)
                return rows
            } catch let error as PostgresError where tries < 4 && error.isRetryable && !error.outcomeUnknown {
                tries += 1
            }
        }
    }

    /// Checks that the database answers; throws if it doesn't.
    public func ping() async throws {
        _ = try await pool.query("SELECT 1")
    }

    /// The time by the database's clock, which is used for every decision (I11).
    public func now() async throws -> Timestamp {
        Timestamp(try await query("SELECT statement_timestamp() AS now")[0].decode("now", as: PostgresTimestamp.self))
    }

    /// Sends every coordinator the hint that there is something new on a channel. A lost hint only costs time.
    public func hint(_ channel: Channel) async throws {
        _ = try await pool.query("SELECT pg_notify(\(channel.rawValue), '')")
    }

    /// The channels of hints.
    public enum Channel: String, Sendable, CaseIterable {
        /// Something can be leased.
        case work = "muster_work"
        /// The log has grown.
        case events = "muster_events"
    }
}

extension Identifier: PostgresScalar {}

extension Timestamp {
    /// A point in time, from the form in which PostgreSQL sends it.
    init(_ timestamp: PostgresTimestamp) {
        self.init(microseconds: timestamp.microsecondsSinceEpoch)
    }
}

extension PostgresRow {
    /// Reads a time that may be NULL.
    func moment(_ column: String) throws -> Timestamp? {
        try decode(column, as: PostgresTimestamp?.self).map(Timestamp.init)
    }
}
