import FoundationEssentials
public import MusterCore
import MusterPostgres

extension Store {
    /// The leases among these whose groups another transaction has locked now.
    public func lockedLeases(_ chunks: [ChunkID]) async throws -> Set<ChunkID> {
        let rows = try await query("SELECT locked_leases(\(chunks.map(\.rawValue))) AS chunk")
        return Set(try rows.map { try $0.decode("chunk", as: ChunkID.self) })
    }

    /// Moves durable offsets forward (I4). Returns the reports whose leases the session has lost.
    public func report(progress reports: [LeaseReport.Progress]) async throws -> [LeaseReport.Progress] {
        guard !reports.isEmpty else { return [] }
        let rows = try await write(
            """
            SELECT n FROM report_progress(\(reports.map(\.session)), \(reports.map(\.lease.chunk)),
                \(reports.map(\.lease.epoch)), \(reports.map(\.durable.offset)), \(reports.map { Int64($0.durable.crc) })) AS n
            """, waking: [])
        return try rows.map { reports[Int(try $0.decode("n", as: Int32.self)) - 1] }
    }

    /// Records what the first response to a task stated, and plans the rest (I3). Returns whether the session still holds
    /// the lease.
    public func report(learned report: LeaseReport.Learned) async throws -> Bool {
        let representation = report.representation
        return try await write(
            """
            SELECT report_answer(
                ROW(\(report.session), \(report.lease.chunk), \(report.lease.epoch), \(representation.size),
                    \(representation.etag), \(representation.lastModified), \(representation.isDateStrong ?? false),
                    \(try Self.json(representation.digests)), \(report.effectiveURL), NULL, NULL, NULL, NULL, NULL)::content,
                \(report.suggestedName), \(report.rung), \(report.askedForAll), \(report.chunkSize)) AS held
            """, waking: .work)[0].decode("held")
    }

    /// Records the result of a trial. The origin has served a second request for a file (row 22): from now on, leases that
    /// fetch whole files from it may be divided. Or another source has served a file far faster than its present source:
    /// the task starts over there.
    public func report(servedAgain lease: LeaseName, session: SessionID) async throws {
        _ = try await write(
            "SELECT report_served_again(\(session), \(lease.chunk), \(lease.epoch), \(policy.firstChunk))::text",
            waking: .work)
    }

    /// Records chunks that are durable to their end, and purges that are done.
    public func report(done reports: [LeaseReport.Done]) async throws {
        guard !reports.isEmpty else { return }
        _ = try await write(
            """
            SELECT report_done(\(reports.map(\.session)), \(reports.map(\.lease.chunk)), \(reports.map(\.lease.epoch)),
                \(reports.map { Int64($0.crc) }), \(reports.map(\.end)), \(reports.map { $0.removed?.rawValue }))::text
            """, waking: .work)
    }

    /// Records files that stand at their paths, with events and counts, and completes groups (I6, I7).
    public func report(finished reports: [LeaseReport.Finished]) async throws {
        guard !reports.isEmpty else { return }
        _ = try await write(
            """
            SELECT report_contents(ARRAY(
                SELECT ROW(u.*)::content
                FROM unnest(\(reports.map(\.session)), \(reports.map(\.lease.chunk)), \(reports.map(\.lease.epoch)),
                    \(reports.map(\.size)), \(reports.map { $0.representation?.etag }),
                    \(reports.map { $0.representation?.lastModified }), \(reports.map { $0.representation?.isDateStrong }),
                    \(try reports.map { try Self.json($0.representation?.digests) }), \(reports.map(\.effectiveURL)),
                    \(reports.map { PostgresJSON($0.digests) }), \(reports.map(\.path)),
                    \(reports.map { $0.crc.map { Int64($0) } }), \(reports.map(\.reusedFrom)),
                    \(reports.map(\.isUnasked)))
                    AS u))::text
            """, waking: [.work, .events])
    }

    /// Takes back leases that the holder releases after it has stopped writing.
    public func report(released reports: [LeaseReport.Progress], session: SessionID) async throws {
        guard !reports.isEmpty else { return }
        _ = try await write(
            """
            SELECT report_released(\(session), \(reports.map(\.lease.chunk)), \(reports.map(\.lease.epoch)),
                \(reports.map(\.durable.offset)), \(reports.map { Int64($0.durable.crc) }), \(policy.row))::text
            """, waking: [.work, .events])
    }

    /// Digests as a JSON object; `nil` if there are none.
    private static func json(_ digests: [String: String]?) throws -> PostgresJSON? {
        guard let digests, !digests.isEmpty else { return nil }
        return PostgresJSON(String(decoding: try JSONEncoder().encode(digests), as: UTF8.self))
    }
}
