public import MusterCore
import MusterPostgres

/// The introduction of a worker.
public struct SessionOpening: Sendable {
    /// The worker's name.
    public var worker: String
    /// The version of its program.
    public var version: String
    /// Labels as a JSON object.
    public var labels: String
    /// Transfers at once.
    public var slots: Int32
    /// The sinks that it reaches.
    public var sinks: [String]
    /// Which directory each of them is, by what the directory says of itself; a sink is missing that could not be read.
    public var marks: [String: String]
    /// The sinks whose directory takes the place of another one, as the operator says.
    public var replaced: [String]
    /// The rate that the worker keeps to by itself, in bytes per second, if it does; only shown.
    public var bytesPerSecond: Int64?
    /// The session that the same process had before, if it had one.
    public var previous: SessionID?

    /// An introduction.
    public init(
        worker: String, version: String, labels: String, slots: Int32, sinks: [String], marks: [String: String] = [:],
        replaced: [String] = [], bytesPerSecond: Int64? = nil, previous: SessionID? = nil
    ) {
        self.worker = worker
        self.version = version
        self.labels = labels
        self.slots = slots
        self.sinks = sinks
        self.marks = marks
        self.replaced = replaced
        self.bytesPerSecond = bytesPerSecond
        self.previous = previous
    }
}

/// A session that was opened.
public struct OpenedSession: Sendable {
    /// The session.
    public let id: SessionID
    /// Which directory each of its sinks has to be, by what that says of itself; a sink is missing that nobody has reached yet.
    public let marks: [String: String]
}

/// What a sync says about its session.
public struct SessionRenewal: Sendable {
    /// The session.
    public var session: SessionID
    /// The number of the sync.
    public var sequence: Int64
    /// The sinks that are in trouble.
    public var parkedSinks: [String]
    /// The states of all sinks as a JSON array.
    public var sinkStatus: String
    /// Bytes received since the last sync.
    public var receivedBytes: Int64

    /// A renewal.
    public init(session: SessionID, sequence: Int64, parkedSinks: [String], sinkStatus: String, receivedBytes: Int64) {
        self.session = session
        self.sequence = sequence
        self.parkedSinks = parkedSinks
        self.sinkStatus = sinkStatus
        self.receivedBytes = receivedBytes
    }
}

/// What a renewal found.
public struct RenewedSession: Sendable {
    /// Whether the sync is the session's newest, and may be granted leases.
    public let isNewest: Bool
    /// Whether the worker shall leave.
    public let isDraining: Bool
    /// How many leases were given back since the worker never learned of them.
    public let repaired: Int64
    /// The leases that the worker holds no longer, whatever it thinks.
    public let lost: [LeaseName]
}

/// A live session as it is shown.
public struct WorkerRecord: Sendable {
    /// The session.
    public let session: SessionID
    /// The worker's name.
    public let worker: String
    /// The version of its program.
    public let version: String
    /// Labels as a JSON object.
    public let labels: String
    /// Transfers at once.
    public let slots: Int32
    /// The states of its sinks as a JSON array.
    public let sinkStatus: String
    /// Whether it is leaving.
    public let isDraining: Bool
    /// The leases that it holds, and what is fetched under them.
    public let inHand: LeasedBytes
    /// Bytes per second lately.
    public let bytesPerSecond: Int64
    /// The rate that it keeps to by itself, in bytes per second, if it does.
    public let bytesPerSecondLimit: Int64?
    /// When it was opened.
    public let openedAt: Timestamp
    /// When it was last heard of.
    public let seenAt: Timestamp
    /// Whether that is longer ago than it should be.
    public let isSilent: Bool
}

extension Store {
    /// Opens a session.
    ///
    /// - Throws: `Refusal.otherDirectory` if the directory of a sink is to be another one than a worker has that lives; `filesElsewhere` if a group that
    ///   is not finished has files there.
    public func openSession(_ opening: SessionOpening, timeToLive: Duration) async throws -> OpenedSession {
        // Not repeated when the outcome is unknown: a session that nobody knows of expires by itself, a doubled one does too.
        let rows = try await writeOnce(
            """
            SELECT session, expected, sink, other, begun FROM open_session(\(opening.worker), \(opening.version),
                \(PostgresJSON(opening.labels)), \(opening.slots), \(opening.sinks), \(opening.sinks.map { opening.marks[$0] ?? "" }),
                \(opening.replaced), \(opening.bytesPerSecond), \(opening.previous), \(timeToLive.milliseconds)::bigint * interval '1 ms')
            """, waking: .nobody)
        guard let session: SessionID = try rows[0].decode("session") else {
            let sink: String = try rows[0].decode("sink")
            if let group: String = try rows[0].decode("begun") {
                throw Refusal.filesElsewhere(sink: sink, group: group)
            }
            throw Refusal.otherDirectory(sink: sink, worker: try rows[0].decode("other"))
        }
        let expected: [String] = try rows[0].decode("expected")
        return OpenedSession(
            id: session,
            marks: Dictionary(zip(opening.sinks, expected).filter { !$1.isEmpty }) { first, _ in first })
    }

    /// Which database this is, by a UUID that it keeps for good: files are marked as those of its tasks (adr/0014).
    public func installation() async throws -> String {
        try await query("SELECT id::text AS id FROM installation")[0].decode("id")
    }

    /// Renews a session by a sync and compares what is held. Returns `nil` when the session is over.
    ///
    /// - Parameters:
    ///   - settled: the sync up to which the worker has every answer, or has given up on it.
    ///   - held: the leases that the worker holds.
    public func renew(
        _ renewal: SessionRenewal, settled: Int64, held: [LeaseName], timeToLive: Duration
    ) async throws -> RenewedSession? {
        let rows = try await write(
            """
            SELECT is_newest, is_draining, repaired, lost FROM sync_session(\(renewal.session), \(renewal.sequence),
                \(timeToLive.milliseconds)::bigint * interval '1 ms', \(renewal.parkedSinks),
                \(PostgresJSON(renewal.sinkStatus)), \(renewal.receivedBytes), \(settled), \(held.map(\.chunk)),
                \(held.map(\.epoch)), \(policy.firstChunk), \(policy.deaths))
            """, waking: .nobody)
        guard let row = rows.first else { return nil }
        let repaired: Int64 = try row.decode("repaired")
        if repaired > 0 { wake([.work, .events]) }
        let lost = try row.decode("lost", as: [Int32]?.self) ?? []
        return RenewedSession(
            isNewest: try row.decode("is_newest"), isDraining: try row.decode("is_draining"),
            repaired: repaired, lost: lost.map { held[Int($0) - 1] })
    }

    /// Forgets sessions that are revoked in sinks by now: no lease names them any more.
    public func settleRevocations(_ revoked: [(sink: String, session: SessionID)]) async throws {
        _ = try await write(
            """
            DELETE FROM revocations r USING unnest(\(revoked.map(\.sink)), \(revoked.map(\.session))) AS u (sink, session_id)
            WHERE r.sink = u.sink AND r.session_id = u.session_id
            """, waking: .nobody)
    }

    /// Ends a session whose worker says that all its writes have stopped, and has removed its directories in sinks.
    public func closeSession(_ session: SessionID) async throws {
        _ = try await write(
            "SELECT close_session(\(session), \(policy.firstChunk), \(policy.deaths))::text", waking: [.work, .events])
    }

    /// Ends a session whose process is gone: the next sweep takes back what it held, and others revoke it. A sync that was under way does not renew it.
    public func expireSession(_ session: SessionID) async throws {
        _ = try await write("UPDATE sessions SET expires_at = 'epoch' WHERE id = \(session)", waking: .nobody)
    }

    /// Gives sessions that expired while nobody could renew them, and were not ended, another time to live.
    public func graceExpiredSessions(timeToLive: Duration) async throws {
        _ = try await write(
            """
            UPDATE sessions SET expires_at = statement_timestamp() + \(timeToLive.milliseconds)::bigint * interval '1 ms'
            WHERE expires_at < statement_timestamp() AND expires_at > 'epoch'
            """, waking: .nobody)
    }

    /// Ends every session, for a coordinator that knows that no worker has outlived its start. No chunk is to blame for
    /// that: it counts as nobody's death.
    public func expireAllSessions() async throws {
        _ = try await write("UPDATE sessions SET expires_at = 'epoch', killed = true", waking: .nobody)
    }

    /// Asks every session of a worker to leave.
    public func drain(worker: String) async throws {
        let rows = try await write(
            "UPDATE sessions SET draining = true WHERE worker = \(worker) RETURNING id", waking: .nobody)
        guard !rows.isEmpty else { throw Refusal.noSuchWorker(worker) }
    }

    /// A page of the live sessions, by the workers' names.
    ///
    /// - Parameter after: the last one of the page before. Its session as well, since a worker that was started again has two
    ///   until the older one expires.
    public func workers(after: (worker: String, session: SessionID)?, limit: Int32) async throws -> [WorkerRecord] {
        try await query(
            """
            SELECT s.id, s.worker, s.version, s.labels::text AS labels, s.slots, s.sink_status::text AS sink_status, s.draining,
                bytes_per_second(s.rate_bytes, s.rate_at, s.opened_at) AS rate, s.opened_at, s.seen_at,
                \(SilentWorker.isSilent) AS is_silent, s.bytes_per_second, u.*
            FROM sessions s CROSS JOIN \(LeasedBytes.sums(where: "l.session_id = s.id"))
            WHERE s.expires_at > statement_timestamp()
                AND (\(after?.worker)::text IS NULL
                    OR (s.worker, s.id) > (\(after?.worker)::text, \(after?.session)::bigint))
            ORDER BY s.worker, s.id LIMIT \(limit)
            """
        ).map { row in
            WorkerRecord(
                session: try row.decode("id"), worker: try row.decode("worker"), version: try row.decode("version"),
                labels: try row.decode("labels"), slots: try row.decode("slots"),
                sinkStatus: try row.decode("sink_status"), isDraining: try row.decode("draining"),
                inHand: try LeasedBytes(row), bytesPerSecond: try row.decode("rate"),
                bytesPerSecondLimit: try row.decode("bytes_per_second"),
                openedAt: Timestamp(try row.decode("opened_at")), seenAt: Timestamp(try row.decode("seen_at")),
                isSilent: try row.decode("is_silent"))
        }
    }
}
