public import MusterCore
public import MusterPostgres

/// The database in the domain's verbs. It holds nothing but a pool: everything that is true is in PostgreSQL.
///
/// Every verb is one statement or one transaction, and harmless when repeated (I10), unless its documentation says otherwise.
/// All of them throw `PostgresError`; the methods for callers' requests throw `Refusal` besides. What changes something is run by
/// `write`, `writeOnce`, `count`, `once` or `transaction`, all of which have to be told who is to be woken by it.
public struct Store: Sendable {
    /// The bounds that the SQL functions are given.
    public struct Policy: Sendable, Hashable {
        /// The size of the chunk that is leased before a file's size is known, in bytes.
        public var firstChunk: Int64 = Limits.chunk.lowerBound.bytes
        /// The most connections to an origin that has no cap of its own.
        public var connectionsPerOrigin: Int32 = 8
        /// The most leases of one session.
        public var leasesPerSession: Int32 = 1_024
        /// The byte budget of the whole fleet, in bytes per second; `nil` when it has none. Every coordinator of a database must be
        /// given the same.
        public var fleetRate: Int64?
        /// What the ends of chunks are multiples of where they are brought nearer, in bytes.
        public var shrinkUnit: Int64 = 1 << 20
        /// The least that is given away of a running chunk, in bytes; its holder keeps as much.
        public var minimumShrink: Int64 = 2 << 20
        /// The part of a group's bytes that may be fetched twice so that it ends sooner.
        public var wastedPart = 0.02
        /// How many tasks a verb on a whole group moves in one transaction (`adr/0015`).
        public var verbSlice: Int32 = 2_000
        /// Failures without progress after which a task fails (I12).
        public var attempts: Int32 = Limits.attempts
        /// The same where nobody was reached at all, nobody answered in time, or a directory is closed to the worker: a person who waits for one
        /// file learns sooner of a wrong name, of a link that hangs, or of what has to be mended.
        public var unreachedAttempts: Int32 = Limits.attempts
        /// Whether a file for which there is no room is tried again until there is: somebody waits, and is told.
        public var waitsForRoom = false
        /// Content versions after which a task fails.
        public var contentVersions: Int32 = Limits.contentVersions
        /// Deaths of sessions without progress after which a task counts as poison (I12).
        public var deaths: Int32 = Limits.deaths
        /// How long a chunk waits at most after its first failure; twice as long after every further one.
        public var backoffBase: Duration = Backoff().base
        /// How long a chunk waits at most after any failure.
        public var backoffMaximum: Duration = Backoff().maximum

        /// The bounds of `Limits`.
        public init() {}

        /// How long a file that waits for room is left alone at most: room that was made is noticed soon.
        static let roomBackoff: Duration = .seconds(5)

        /// Failures without progress after which a task fails.
        func attempts(isToldSoon: Bool) -> Int32 {
            isToldSoon ? min(unreachedAttempts, attempts) : attempts
        }
    }

    /// Why a request can't be fulfilled as things stand.
    public enum Refusal: Error, Sendable, Hashable {
        /// There is no group of this name.
        case noSuchGroup(String)
        /// There is no task of this key.
        case noSuchTask(String)
        /// There is no live worker of this name.
        case noSuchWorker(String)
        /// The directory of the sink is to be another one than the worker has that is named.
        case otherDirectory(sink: String, worker: String)
        /// The directory of the sink is to be another one than that in which the group has files, and is to get more.
        case filesElsewhere(sink: String, group: String)
        /// A group of this name exists.
        case groupExists(String)
        /// Two lines mean different things by the same key.
        case duplicateKey(String, Collision)
        /// A line without a key of its own means another file than the task that is there by its path.
        case otherURLs(String, url: String, existing: String, line: Int64)
        /// Two lines have the same destination.
        case duplicatePath(String, Collision)
        /// What one line has as its file, another one needs as a directory.
        case nestedPath(String, Collision)
        /// A live task of a group has this destination already; nobody knows which where another one came in between.
        case destinationTaken(String?, line: Int64?, by: String?)
        /// The sizes of the group's tasks add up to more than can be counted.
        case groupTooLarge
        /// Some of the staged tasks are not there any more: everything has to be sent again.
        case uploadIncomplete
        /// The number of the group's tasks is final.
        case groupSealed(newKey: String, line: Int64)
        /// The group has finished.
        case groupFinished(newKey: String, line: Int64)
        /// Groups would wait for each other in a circle: from the group that was to wait, by those that it would wait for, to itself.
        case prerequisiteCycle([String])
        /// The group that was to be waited for does not exist.
        case noSuchPrerequisite(String)
        /// A group has finished, and can't be told to wait for others any more.
        case prerequisitesTooLate(String)
        /// Another group still waits for this one.
        case groupInUse(String, by: String)
        /// The key of the request was another request's.
        case keyReused
        /// PostgreSQL knows no time zone of this name; `pointer` says where in the request it stands.
        case unknownTimeZone(String, pointer: String)
    }

    let pool: PostgresPool
    let policy: Policy
    private let onWake: @Sendable (Wake) -> Void

    /// A store over a pool that its owner runs and shuts down.
    ///
    /// - Parameter onWake: called after each commit that somebody may wait for; it must not block.
    public init(
        pool: PostgresPool, policy: Policy = Policy(), onWake: @escaping @Sendable (Wake) -> Void = { _ in }
    ) {
        self.pool = pool
        self.policy = policy
        self.onWake = onWake
    }

    /// Wakes those who wait for what was committed just now.
    func wake(_ wake: Wake) {
        if !wake.isEmpty { onWake(wake) }
    }

    /// Runs one statement that changes something, and wakes those who wait for that. It may be repeated, as `query` does.
    ///
    /// - Parameters:
    ///   - wake: who is woken; `nobody` as well for a verb that calls `wake(_:)` itself once it has read what has changed.
    ///   - deadline: for a statement that takes longer than others.
    func write(
        _ sql: SQL, waking wake: Wake, deadline: ContinuousClock.Instant? = nil
    ) async throws -> PostgresRows {
        let rows = try await change(sql, deadline: deadline)
        self.wake(wake)
        return rows
    }

    /// Runs one statement that says as `count` how much it changed, and wakes those who wait for that unless it is nothing.
    func count(_ sql: SQL, waking wake: Wake) async throws -> Int64 {
        let count: Int64 = try await change(sql)[0].decode("count")
        if count > 0 { self.wake(wake) }
        return count
    }

    /// Runs one statement that changes nothing. It may be repeated: after a deadlock or a serialization failure, and when the
    /// connection broke so that nobody knows whether it was committed (fault F6).
    ///
    /// - Parameter deadline: for a statement that takes longer than others.
    func query(_ sql: SQL, deadline: ContinuousClock.Instant? = nil) async throws -> PostgresRows {
        var tries = 0
        while true {
            do {
                return try await pool.query(sql, deadline: deadline)
            } catch let error as PostgresError where tries < 4 && (error.isRetryable || error.outcomeUnknown) {
                tries += 1
            }
        }
    }

    /// Runs one statement that changes something and must not be repeated when its outcome is unknown, and wakes those who wait for
    /// that.
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

    /// Whether the database answers.
    public func ping() async throws {
        _ = try await pool.query("SELECT 1")
    }

    /// The database's clock, which decides every moment (I11).
    public func now() async throws -> Timestamp {
        Timestamp(try await query("SELECT statement_timestamp() AS now")[0].decode("now", as: PostgresTimestamp.self))
    }

    /// A hint to every coordinator that there is something new on a channel. Lost hints only cost time.
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
    /// A moment as the database sends it.
    init(_ timestamp: PostgresTimestamp) {
        self.init(microseconds: timestamp.microsecondsSinceEpoch)
    }
}
