public import MusterCore
import MusterPostgres

extension Store {
    /// Deals with leases that could not be fulfilled, by what each failure means and the rule of its kind (I12).
    public func report(failed reports: [LeaseReport.Failed]) async throws {
        guard !reports.isEmpty else { return }
        let limits = reports.map { bounds(of: $0) }
        _ = try await write(
            """
            SELECT report_failures(ARRAY(
                SELECT ROW(u.*, \(policy.backoffBase.milliseconds), \(policy.firstChunk), \(policy.contentVersions), \(policy.deaths),
                    \(policy.connectionsPerOrigin), 1)::failure
                FROM unnest(\(reports.map(\.progress.session)), \(reports.map(\.progress.lease.chunk)),
                    \(reports.map(\.progress.lease.epoch)), \(reports.map(\.progress.durable.offset)),
                    \(reports.map { Int64($0.progress.durable.crc) }), \(reports.map(\.kind.rule.rawValue)),
                    \(reports.map(\.kind.rawValue)), \(reports.map(\.detail)), \(reports.map(\.source)),
                    \(reports.map(\.retryAfter)), \(reports.map(\.status)), \(reports.map(\.requestID)),
                    \(reports.map(\.address)), \(reports.map(\.limitSignal.rawValue)), \(reports.map(\.limitSeconds)),
                    \(reports.map(\.isExpiry)), \(reports.map(\.random)), \(limits.map(\.attempts)),
                    \(reports.map { $0.isUnreached ? policy.unreachedAttempts : nil }), \(reports.map(\.isUnanswered)),
                    \(limits.map(\.backoff.milliseconds)))
                    AS u))::text
            """, waking: [.work, .events])
    }

    /// How many tries without progress end the task of a failure, and the longest pause between two.
    private func bounds(of report: LeaseReport.Failed) -> (attempts: Int32, backoff: Duration) {
        guard policy.waitsForRoom, report.kind == .noSpace else {
            let isToldSoon = report.kind == .timeout || report.kind == .noPermission
            return (policy.attempts(isToldSoon: isToldSoon), policy.backoffMaximum)
        }
        return (.max, min(policy.backoffMaximum, Policy.roomBackoff))
    }

    /// The resolver gave a fresh URL: it is used for every further request to the source (range contract, row 21).
    public func report(resolved report: LeaseReport.Resolved) async throws {
        _ = try await write(
            """
            SELECT report_resolved(\(report.session), \(report.lease.chunk), \(report.lease.epoch), \(report.url),
                \(report.origin), \(report.headers.map { PostgresJSON($0) }))::text
            """, waking: .work)
    }

    /// Starts a task over, with its source asked on a lower rung.
    public func report(restart lease: LeaseName, on rung: Rung, detail: String, session: SessionID) async throws {
        _ = try await write(
            """
            SELECT report_restart(\(session), \(lease.chunk), \(lease.epoch), \(rung), \(detail), \(policy.firstChunk),
                \(policy.attempts))::text
            """, waking: [.work, .events])
    }

    /// A lease that was granted just now, and whose work nobody can be told since what is stored of it can't be read, fails alone: its
    /// task is given up, which says why, and goes on by `retry` when that has been put right. A question to a resolver counts as
    /// one without an answer, and a purge is granted again later.
    ///
    /// - Parameter detail: what can't be read, without its value.
    public func report(unreadable lease: LeaseName, of session: SessionID, detail: String) async throws {
        // Nothing was fetched under it.
        let progress = LeaseReport.Progress(session: session, lease: lease, durable: DurablePrefix(offset: 0, crc: 0))
        try await report(failed: [LeaseReport.Failed(progress: progress, kind: .unreadable, detail: detail)])
    }

    /// Leases that were granted just now. One that can't be read fails alone; otherwise the claim, which brings the same ones again,
    /// would fail for everybody for as long as the row stands there.
    func grants(_ rows: PostgresRows) async throws -> [GrantedLease] {
        var leases: [GrantedLease] = []
        for row in rows {
            do {
                leases.append(try GrantedLease(row, lastAttempt: policy.attempts))
            } catch {
                let lease = LeaseName(chunk: try row.decode("chunk_id"), epoch: try row.decode("epoch"))
                try await report(unreadable: lease, of: try row.decode("session_id"), detail: "\(error)")
            }
        }
        return leases
    }
}
