public import MusterCore
import MusterPostgres

extension Store {
    /// Deals with a lease that could not be fulfilled, by what its failure means and the rule of its kind (I12). `random`, within
    /// `0..<1`, sets the jitter.
    public func report(failed report: LeaseReport.Failed, random: Double) async throws {
        let progress = report.progress
        let status = report.status.map { Int($0) }
        let waits = policy.waitsForRoom && report.kind == .noSpace
        let attempts = waits ? Int32.max : policy.attempts(isUnreached: report.isUnreached)
        let backoff = waits ? min(policy.backoffMaximum, Policy.roomBackoff) : policy.backoffMaximum
        _ = try await write(
            """
            SELECT report_failure(\(progress.session), \(progress.lease.chunk), \(progress.lease.epoch),
                \(progress.durable.offset), \(Int64(progress.durable.crc)), \(report.kind.rule.rawValue),
                \(report.kind.rawValue), \(report.detail), \(report.source), \(report.retryAfter), \(report.status),
                \(report.requestID), \(report.address), \(report.kind.limitSignal(status: status).rawValue),
                \(report.kind.isExpiry(status: status)), \(random), \(policy.firstChunk), \(attempts),
                \(policy.contentVersions), \(policy.deaths), \(policy.connectionsPerOrigin), \(policy.backoffBase.milliseconds),
                \(backoff.milliseconds))::text
            """, waking: [.work, .events])
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
        try await report(
            failed: LeaseReport.Failed(
                // Nothing was fetched under it.
                progress: .init(session: session, lease: lease, durable: DurablePrefix(offset: 0, crc: 0)),
                kind: .unreadable, detail: detail, source: nil, retryAfter: nil),
            random: 0)
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
