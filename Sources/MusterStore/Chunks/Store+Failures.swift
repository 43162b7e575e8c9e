public import MusterCore
import MusterPostgres

extension Store {
    /// Handles leases that could not be fulfilled, by the meaning of each failure and the rule of its kind (I12).
    public func report(failed reports: [LeaseReport.Failed]) async throws {
        guard !reports.isEmpty else { return }
        let limits = reports.map { bounds(of: $0) }
        _ = try await write(
            """
            SELECT report_failures(ARRAY(
                SELECT ROW(u.*, \(policy.row), 1)::failure
                FROM unnest(\(reports.map(\.progress.session)), \(reports.map(\.progress.lease.chunk)),
                    \(reports.map(\.progress.lease.epoch)), \(reports.map(\.progress.durable.offset)),
                    \(reports.map { Int64($0.progress.durable.crc) }), \(reports.map(\.kind.rule.rawValue)),
                    \(reports.map(\.kind.rawValue)), \(reports.map(\.detail)), \(reports.map(\.source)),
                    \(reports.map(\.retryAfter)), \(reports.map(\.status)), \(reports.map(\.requestID)),
                    \(reports.map(\.address)), \(reports.map(\.limitSignal.rawValue)), \(reports.map(\.limitSeconds)),
                    \(reports.map(\.isExpiry)), \(reports.map(\.random)), \(limits.map(\.attempts)),
                    \(reports.map { $0.isUnreached ? policy.unreachedAttempts : nil }), \(reports.map(\.isUnanswered)),
                    \(reports.map(\.isElsewhere)), \(reports.map(\.servedAtOnce)), \(limits.map(\.backoff.milliseconds)))
                    AS u))::text
            """, waking: [.work, .events])
    }

    /// The number of tries without progress after which the task of a failed lease fails, and the longest pause between two
    /// tries.
    private func bounds(of report: LeaseReport.Failed) -> (attempts: Int32, backoff: Duration) {
        guard policy.waitsForRoom, report.kind == .noSpace else {
            let isToldSoon = report.kind == .timeout || report.kind == .noPermission
            return (policy.attempts(isToldSoon: isToldSoon), policy.backoffMaximum)
        }
        return (.max, min(policy.backoffMaximum, Policy.roomBackoff))
    }

    /// Records a fresh URL from the resolver. All further requests to the source use it (range contract, row 21).
    public func report(resolved report: LeaseReport.Resolved) async throws {
        _ = try await write(
            """
            SELECT report_resolved(\(report.session), \(report.lease.chunk), \(report.lease.epoch), \(report.url),
                \(report.origin), \(report.headers.map { PostgresJSON($0) }))::text
            """, waking: .work)
    }

    /// Starts a task over with its source asked on a lower rung.
    public func report(restart lease: LeaseName, on rung: Rung, detail: String, session: SessionID) async throws {
        _ = try await write(
            """
            SELECT report_restart(\(session), \(lease.chunk), \(lease.epoch), \(rung), \(detail), \(policy.row))::text
            """, waking: [.work, .events])
    }

    /// Fails a lease that was just granted and can't be sent to its worker, because its stored data can't be read. Only
    /// this lease fails. Its task is given up with that reason, and can be retried once the data are mended. A question to
    /// a resolver counts as a question without an answer, and a purge is granted again later.
    ///
    /// - Parameter detail: what can't be read, without its value.
    public func report(unreadable lease: LeaseName, of session: SessionID, detail: String) async throws {
        // Nothing was fetched under it.
        let progress = LeaseReport.Progress(session: session, lease: lease, durable: DurablePrefix(offset: 0, crc: 0))
        try await report(failed: [LeaseReport.Failed(progress: progress, kind: .unreadable, detail: detail)])
    }

    /// Reads the leases that were just granted. A lease that can't be read fails alone. Otherwise the whole claim would
    /// fail, and would return the same row again, for all workers and for as long as the row exists.
    func grants(_ rows: PostgresRows) async throws -> [GrantedLease] {
        var leases: [GrantedLease] = []
        for row in rows {
            do {
                leases.append(try GrantedLease(row, policy: policy))
            } catch {
                let lease = LeaseName(chunk: try row.decode("chunk_id"), epoch: try row.decode("epoch"))
                try await report(unreadable: lease, of: try row.decode("session_id"), detail: "\(error)")
            }
        }
        return leases
    }
}
