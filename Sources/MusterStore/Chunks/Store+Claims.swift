public import MusterCore
import MusterPostgres

/// A session that asks for work.
public struct ClaimRequest: Sendable, Hashable {
    /// The session.
    public let session: SessionID
    /// The number of the sync that asks. Only the session's newest sync is granted leases.
    public let sequence: Int64
    /// The number of transfers that it can begin: lanes that may be opened for it, or other work that it can take.
    public let room: Int32
    /// The number of further leases that it takes, to wait in its lanes.
    public let ahead: Int32
    /// Whether it takes one lease more, for a group that has no connection. Only a session without room has one (I19).
    public let spare: Bool

    /// A request.
    public init(session: SessionID, sequence: Int64, room: Int32, ahead: Int32 = 0, spare: Bool = false) {
        self.session = session
        self.sequence = sequence
        self.room = room
        self.ahead = ahead
        self.spare = spare
    }
}

extension Store {
    /// Grants leases (I1, I2, I5).
    ///
    /// Not repeated when its outcome is unknown: leases whose grant did not reach the worker are given back by its next
    /// sync.
    public func claim(_ requests: [ClaimRequest]) async throws -> [GrantedLease] {
        let rows = try await writeOnce(
            """
            SELECT g.*
            FROM (
                SELECT array_agg(s.chunk_id) AS chunks, array_agg(s.chunk_id) FILTER (WHERE s.is_limited) AS limited
                FROM share_leases(\(requests.map(\.session)), \(requests.map(\.sequence)), \(requests.map(\.room)),
                    \(requests.map(\.ahead)), \(requests.map(\.spare)), \(policy.row)) AS s
            ) AS shared
            CROSS JOIN LATERAL granted_leases(shared.chunks, coalesce(shared.limited, '{}')) AS g
            WHERE shared.chunks IS NOT NULL
            """, waking: []
        )
        return try await grants(rows)
    }
}
