public import MusterCore
import MusterPostgres

/// What a worker says of itself when it opens a session.
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
    /// The identity of each sink's directory, as stored in the directory itself. Sinks that could not be read are missing.
    public var marks: [String: String]
    /// The sinks whose directory replaces another one, by the operator's order.
    public var replaced: [String]
    /// The worker's own rate limit, in bytes per second; `nil` for none. It is only shown.
    public var bytesPerSecond: Int64?
    /// The former session of the same process; `nil` if there was none.
    public var previous: SessionID?

    /// Describes a worker that opens a session.
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
    /// The identity that the directory of each sink must have, as stored in the directory itself. Sinks that no worker has
    /// reached yet are missing.
    public let marks: [String: String]
}

/// A sink that was added to a session.
public struct AddedSink: Sendable {
    /// The identity that its directory must have; `nil` as long as no worker has reached it.
    public let mark: String?
}

/// What a sync says about its session.
public struct SessionRenewal: Sendable {
    /// The session.
    public var session: SessionID
    /// The number of the sync.
    public var sequence: Int64
    /// The states of all sinks as a JSON array. A sink in trouble has the field `parked`.
    public var sinkStatus: String
    /// Bytes received since the last sync.
    public var receivedBytes: Int64

    /// A renewal.
    public init(session: SessionID, sequence: Int64, sinkStatus: String, receivedBytes: Int64) {
        self.session = session
        self.sequence = sequence
        self.sinkStatus = sinkStatus
        self.receivedBytes = receivedBytes
    }
}

/// What a renewal found.
public struct RenewedSession: Sendable {
    /// Whether the sync is the session's newest, and may be granted leases.
    public let isNewest: Bool
    /// Whether the worker is asked to leave.
    public let isDraining: Bool
    /// The number of leases that were given back because the worker never learned of them.
    public let repaired: Int64
    /// The leases that the worker reported as held, but has lost.
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
    /// The leases that it holds, and the bytes fetched under them.
    public let inHand: LeasedBytes
    /// Recent speed in bytes per second.
    public let bytesPerSecond: Int64
    /// Its own rate limit, in bytes per second; `nil` for none.
    public let bytesPerSecondLimit: Int64?
    /// When it was opened.
    public let openedAt: Timestamp
    /// When the coordinator last heard from it.
    public let seenAt: Timestamp
    /// Whether its syncs are overdue (`SilentWorker.isSilent`).
    public let isSilent: Bool
    /// Whether another live process has the worker's name (`SharedName.isShared`).
    public let sharesName: Bool
}

extension Store {
    /// Opens a session.
    ///
    /// - Throws: `Refusal.otherDirectory` if a live worker has another directory for one of the sinks;
    ///   `Refusal.filesElsewhere` if an unfinished group has files in another directory of the sink.
    public func openSession(_ opening: SessionOpening, timeToLive: Duration) async throws -> OpenedSession {
        // Not repeated when the outcome is unknown: a session that its worker never learned of expires by itself.
        let rows = try await writeOnce(
            """
            SELECT session, expected, sink, other, begun FROM open_session(\(opening.worker), \(opening.version),
                \(PostgresJSON(opening.labels)), \(opening.slots), \(opening.sinks), \(opening.sinks.map { opening.marks[$0] ?? "" }),
                \(opening.replaced), \(opening.bytesPerSecond), \(opening.previous), \(timeToLive.milliseconds)::bigint * interval '1 ms')
            """, waking: [])
        guard let session: SessionID = try rows[0].decode("session") else {
            let sink: String = try rows[0].decode("sink")
            throw try Self.refusal(
                of: sink, rows[0], worker: opening.worker, place: opening.sinks.firstIndex(of: sink))
        }
        let expected: [String] = try rows[0].decode("expected")
        return OpenedSession(
            id: session,
            marks: Dictionary(zip(opening.sinks, expected).filter { !$1.isEmpty }) { first, _ in first })
    }

    /// Adds a sink to a live session that was opened without it. Returns `nil` if the session is over.
    ///
    /// - Parameters:
    ///   - mark: the identity of the sink's directory, as stored in the directory itself; `nil` if it could not be read.
    ///   - isReplaced: whether the directory replaces another one, by the operator's order.
    /// - Throws: the refusals of `openSession`; `Refusal.tooManySinks` if the session has as many as it may have.
    public func addSink(
        _ sink: String, mark: String?, isReplaced: Bool, to session: SessionID
    ) async throws -> AddedSink? {
        let rows = try await write(
            """
            SELECT worker, crowded, expected, other, begun
            FROM add_sink(\(session), \(sink), \(mark ?? ""), \(isReplaced), \(Int32(Limits.sinksPerWorker)))
            """, waking: [])
        guard let worker: String = try rows[0].decode("worker") else { return nil }
        let isCrowded: Bool = try rows[0].decode("crowded")
        if isCrowded { throw Refusal.tooManySinks }
        let (other, group): (String?, String?) = (try rows[0].decode("other"), try rows[0].decode("begun"))
        guard other == nil, group == nil else {
            throw try Self.refusal(of: sink, rows[0], worker: worker, place: nil)
        }
        return AddedSink(mark: try rows[0].decode("expected"))
    }

    /// Why the directory that a worker has for a sink is refused, from the columns `other` and `begun`.
    private static func refusal(
        of sink: String, _ row: PostgresRow, worker: String, place: Int?
    ) throws -> Refusal {
        if let group: String = try row.decode("begun") {
            return .filesElsewhere(sink: sink, group: group, place: place)
        }
        let other: String = try row.decode("other")
        return .otherDirectory(sink: sink, worker: other, isNamesake: other == worker, place: place)
    }

    /// The database's UUID, which never changes. Files are marked with it as belonging to its tasks (adr/0014).
    public func installation() async throws -> String {
        try await query("SELECT id::text AS id FROM installation")[0].decode("id")
    }

    /// Renews a session by a sync and compares the leases that both sides hold. Returns `nil` if the session is over.
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
                \(timeToLive.milliseconds)::bigint * interval '1 ms', \(PostgresJSON(renewal.sinkStatus)),
                \(renewal.receivedBytes), \(settled), \(held.map(\.chunk)), \(held.map(\.epoch)), \(policy.row))
            """, waking: [])
        guard let row = rows.first else { return nil }
        let repaired: Int64 = try row.decode("repaired")
        if repaired > 0 { wake([.work, .events]) }
        let lost = try row.decode("lost", as: [Int32]?.self) ?? []
        return RenewedSession(
            isNewest: try row.decode("is_newest"), isDraining: try row.decode("is_draining"),
            repaired: repaired, lost: lost.map { held[Int($0) - 1] })
    }

    /// Deletes the revocations of sessions that are revoked in their sinks by now: leases don't name them any more.
    public func settleRevocations(_ revoked: [(sink: String, session: SessionID)]) async throws {
        _ = try await write(
            """
            DELETE FROM revocations r USING unnest(\(revoked.map(\.sink)), \(revoked.map(\.session))) AS u (sink, session_id)
            WHERE r.sink = u.sink AND r.session_id = u.session_id
            """, waking: [])
    }

    /// Ends a session whose worker reports that all its writes have stopped and that it has removed its directories in
    /// sinks.
    public func closeSession(_ session: SessionID) async throws {
        _ = try await write("SELECT close_session(\(session), \(policy.row))::text", waking: [.work, .events])
    }

    /// Ends a session whose process is gone. The next sweep takes back its leases, and other workers revoke it. A sync that
    /// was under way does not renew it.
    public func expireSession(_ session: SessionID) async throws {
        _ = try await write("UPDATE sessions SET expires_at = 'epoch' WHERE id = \(session)", waking: [])
    }

    /// Gives a new time to live to sessions that expired while no coordinator could renew them and that were not ended.
    public func graceExpiredSessions(timeToLive: Duration) async throws {
        _ = try await write(
            """
            UPDATE sessions SET expires_at = statement_timestamp() + \(timeToLive.milliseconds)::bigint * interval '1 ms'
            WHERE expires_at < statement_timestamp() AND expires_at > 'epoch'
            """, waking: [])
    }

    /// Ends every session, for a coordinator that knows that no worker has outlived its start. This counts as a death of no
    /// chunk: chunks are not to blame.
    public func expireAllSessions() async throws {
        _ = try await write("UPDATE sessions SET expires_at = 'epoch', killed = true", waking: [])
    }

    /// Asks every session of a worker to leave.
    public func drain(worker: String) async throws {
        let rows = try await write(
            "UPDATE sessions SET draining = true WHERE worker = \(worker) RETURNING id", waking: [])
        guard !rows.isEmpty else { throw Refusal.noSuchWorker(worker) }
    }

    /// A page of the live sessions, by the workers' names.
    ///
    /// - Parameter after: the last session of the page before. It names the session as well, since a restarted worker has
    ///   two sessions until the older session expires.
    public func workers(after: (worker: String, session: SessionID)?, limit: Int32) async throws -> [WorkerRecord] {
        try await query(
            """
            SELECT s.id, s.worker, s.version, s.labels::text AS labels, s.slots, s.sink_status::text AS sink_status, s.draining,
                bytes_per_second(s.rate_bytes, s.rate_at, s.opened_at) AS rate, s.opened_at, s.seen_at,
                \(SilentWorker.isSilent) AS is_silent, \(SharedName.isShared) AS shares_name, s.bytes_per_second, u.*
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
                isSilent: try row.decode("is_silent"), sharesName: try row.decode("shares_name"))
        }
    }
}
