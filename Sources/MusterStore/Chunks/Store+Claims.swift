public import MusterCore
import MusterPostgres

/// A session that asks for work.
public struct ClaimRequest: Sendable, Hashable {
    /// The session.
    public let session: SessionID
    /// The sync that asks; only the session's newest one is granted anything.
    public let sequence: Int64
    /// How many leases it can take.
    public let room: Int32

    /// A request.
    public init(session: SessionID, sequence: Int64, room: Int32) {
        self.session = session
        self.sequence = sequence
        self.room = room
    }
}

/// A lease that was granted just now.
public struct GrantedLease: Sendable {
    /// Who holds it.
    public let session: SessionID
    /// Its name.
    public let name: LeaseName
    /// What to do.
    public let kind: LeaseKind
    /// The task.
    public let task: TaskID
    /// The sink.
    public let sink: String
    /// Where the file shall stand; for a purge the finished file that shall go, or nothing.
    public let path: String
    /// The content version.
    public let version: Int32
    /// The chunk's first byte.
    public let start: Int64
    /// The byte after its last, when known.
    public let end: Int64?
    /// Whether the task's chunks are cut.
    public let isPlanned: Bool
    /// Whether it must be fetched as one stream.
    public let isStream: Bool
    /// Whether a lease on this content version was lost (I8).
    public let isFenced: Bool
    /// What a predecessor left.
    public let resume: DurablePrefix
    /// What is known of the content.
    public let representation: Representation
    /// The size that the caller expects.
    public let expectedSize: Int64?
    /// The digests that the caller expects, as a JSON object.
    public let expectedDigests: String?
    /// Which source to fetch from.
    public let source: Int32
    /// Its URL; `nil` for work that fetches nothing.
    public let url: String?
    /// The caller's headers, as a JSON object; may hold secrets.
    public let headers: String?
    /// For a finalize lease: every chunk.
    public let chunks: [FinishedChunk]
}

extension Store {
    /// Grants leases: the only way into the claim function, and so the one place where a lease comes into being (I1, I2, I5).
    ///
    /// Not repeated when its outcome is unknown: leases that were granted without the worker learning of them are given back
    /// by its next sync.
    public func claim(_ requests: [ClaimRequest]) async throws -> [GrantedLease] {
        let rows = try await queryOnce(
            """
            SELECT * FROM claim_chunks(\(requests.map(\.session)), \(requests.map(\.sequence)), \(requests.map(\.room)),
                \(policy.leasesPerOrigin), \(policy.leasesPerSession))
            """)
        return try rows.map(Self.lease)
    }

    private static func lease(_ row: PostgresRow) throws -> GrantedLease {
        let start: Int64 = try row.decode("first")
        let crc: Int64 = try row.decode("crc")
        let kind: String = try row.decode("kind")
        return GrantedLease(
            session: try row.decode("session_id"),
            name: LeaseName(chunk: try row.decode("chunk_id"), epoch: try row.decode("epoch")),
            kind: LeaseKind(rawValue: kind) ?? .fetch,
            task: try row.decode("task_id"), sink: try row.decode("sink"), path: try row.decode("path"),
            version: try row.decode("version"), start: start, end: try row.decode("last"),
            isPlanned: try row.decode("planned"), isStream: try row.decode("stream"),
            isFenced: try row.decode("fenced"),
            resume: DurablePrefix(offset: try row.decode("resume"), crc: UInt32(truncatingIfNeeded: crc)),
            representation: Representation(
                size: try row.decode("size"), etag: try row.decode("etag"),
                lastModified: try row.decode("last_modified")),
            expectedSize: try row.decode("expected_size"), expectedDigests: try row.decode("expected_digests"),
            source: try row.decode("source"), url: try row.decode("url"), headers: try row.decode("headers"),
            chunks: try finishedChunks(row))
    }

    private static func finishedChunks(_ row: PostgresRow) throws -> [FinishedChunk] {
        guard let starts = try row.decode("done_first", as: [Int64]?.self),
            let ends = try row.decode("done_last", as: [Int64]?.self),
            let crcs = try row.decode("done_crc", as: [Int64]?.self)
        else { return [] }
        return zip(starts, zip(ends, crcs)).compactMap { start, rest in
            ByteRange(start: start, end: rest.0).map {
                FinishedChunk(range: $0, crc: UInt32(truncatingIfNeeded: rest.1))
            }
        }
    }
}
