public import MusterCore
import MusterPostgres

/// What was done about stragglers.
public struct StragglerHelp: Sendable {
    /// The sessions that are asked to shrink chunks; a session is listed once for each chunk.
    public let asked: [SessionID]
    /// The number of chunks that were taken back from silent holders. The next claim grants them.
    public let taken: Int

    /// No help was given.
    public static let none = StragglerHelp(asked: [], taken: 0)
}

/// A request to a holder to end its chunk at another byte.
public struct ShrinkWish: Sendable, Hashable {
    /// The lease.
    public let lease: LeaseName
    /// The wanted end of the chunk (exclusive).
    public let end: Int64
    /// Whether that is beyond the end that the holder agreed to: the range behind that end was given back to it (adr/0037).
    public let isFurther: Bool
    /// Whether this applies only while nothing has come: the coordinator knows of no response yet (adr/0024).
    public let isUntouched: Bool
}

/// The result of a holder's answer to a `ShrinkWish`.
public enum ShrinkOutcome: Sendable, Hashable {
    /// The tail is ready for other workers.
    case agreed
    /// The chunk keeps its end: it is too late, or the chunk can't be divided.
    case kept
    /// The session has lost the lease.
    case lost
}

extension Store {
    /// Lets sessions that have room left after a claim help with chunks that would delay the completion of their groups. It
    /// asks holders to give tails away, or takes chunks back from silent holders.
    ///
    /// Not repeated when its outcome is unknown, like `claim`.
    public func helpStragglers(_ idle: [ClaimRequest]) async throws -> StragglerHelp {
        let rows = try await writeOnce(
            """
            SELECT h.asked, h.taken
            FROM help_stragglers(\(idle.map(\.session)), \(idle.map(\.sequence)), \(idle.map(\.room)), \(policy.row)) AS h
            """, waking: [])
        let asked = try rows.compactMap { try $0.decode("asked", as: SessionID?.self) }
        let taken = rows.count - asked.count
        // A chunk that is taken back too often is poison and fails its task, which writes events.
        if taken > 0 { wake([.work, .events]) }
        return StragglerHelp(asked: asked, taken: taken)
    }

    /// Asks holders to give up lanes that more urgent groups need, or that exceed a cap that was lowered (I5, I15). Returns
    /// the sessions that are asked; a session is listed once for each lease.
    public func preempt() async throws -> [SessionID] {
        try await writeOnce("SELECT p AS session FROM preempt(\(policy.connectionsPerOrigin)) AS p", waking: [])
            .map { try $0.decode("session", as: SessionID.self) }
    }

    /// The sessions that are asked to shrink chunks and have not answered.
    public func shrinkingSessions() async throws -> Set<SessionID> {
        let rows = try await query("SELECT DISTINCT session_id FROM leases WHERE shrink_to IS NOT NULL")
        return Set(try rows.map { try $0.decode("session_id", as: SessionID.self) })
    }

    /// The chunks that a session is asked to shrink.
    public func shrinkWishes(of session: SessionID) async throws -> [ShrinkWish] {
        try await query(
            """
            SELECT l.chunk_id, l.epoch, l.shrink_to, l.shrink_to = l.last AS is_further, NOT t.planned AS is_untouched
            FROM leases l JOIN tasks t ON t.id = l.task_id
            WHERE l.session_id = \(session) AND l.shrink_to IS NOT NULL ORDER BY l.chunk_id
            """
        ).map { row in
            ShrinkWish(
                lease: LeaseName(chunk: try row.decode("chunk_id"), epoch: try row.decode("epoch")),
                end: try row.decode("shrink_to"), isFurther: try row.decode("is_further"),
                isUntouched: try row.decode("is_untouched"))
        }
    }

    /// Records that a holder's chunk now ends at `end`: the range behind it is for other workers (I3).
    ///
    /// - Parameter speed: the speed of the holder's request in bytes per second, if bytes have come.
    public func report(
        shrunk lease: LeaseName, end: Int64, speed: Int64? = nil, session: SessionID
    ) async throws -> ShrinkOutcome {
        let isNearer: Bool? = try await write(
            "SELECT report_shrunk(\(session), \(lease.chunk), \(lease.epoch), \(end), \(speed)) AS is_nearer",
            waking: []
        )[0].decode("is_nearer")
        if isNearer == true { wake(.work) }
        return isNearer.map { $0 ? .agreed : .kept } ?? .lost
    }
}
