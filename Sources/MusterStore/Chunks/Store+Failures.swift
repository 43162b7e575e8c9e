public import MusterCore
import MusterPostgres

extension Store {
    /// Deals with a lease that could not be fulfilled, by what its failure means and the rule of its kind (I12). `random`, within
    /// `0..<1`, sets the jitter.
    public func report(failed report: LeaseReport.Failed, random: Double) async throws {
        let progress = report.progress
        let status = report.status.map { Int($0) }
        _ = try await write(
            """
            SELECT report_failure(\(progress.session), \(progress.lease.chunk), \(progress.lease.epoch),
                \(progress.durable.offset), \(Int64(progress.durable.crc)), \(Self.name(report.kind.rule)),
                \(report.kind.rawValue), \(report.detail), \(report.source), \(report.retryAfter), \(report.status),
                \(report.requestID), \(report.address), \(report.kind.limitSignal(status: status).rawValue),
                \(report.kind.isExpiry(status: status)), \(random), \(policy.firstChunk), \(policy.attempts),
                \(policy.contentVersions), \(policy.deaths), \(policy.leasesPerOrigin), \(policy.backoffBase.milliseconds),
                \(policy.backoffMaximum.milliseconds))::text
            """, waking: [.work, .events])
    }

    /// The resolver gave a fresh URL: it is used for every further request to the source (`http.md` row 21).
    public func report(resolved report: LeaseReport.Resolved) async throws {
        _ = try await write(
            """
            SELECT report_resolved(\(report.session), \(report.lease.chunk), \(report.lease.epoch), \(report.url),
                \(report.origin), \(report.headers.map { PostgresJSON($0) }))::text
            """, waking: .work)
    }

    /// Starts a task over as one stream.
    public func report(restart lease: LeaseName, detail: String, session: SessionID) async throws {
        _ = try await write(
            """
            SELECT report_restart(\(session), \(lease.chunk), \(lease.epoch), \(detail), \(policy.firstChunk),
                \(policy.attempts))::text
            """, waking: [.work, .events])
    }

    private static func name(_ rule: FailureKind.Rule) -> String {
        switch rule {
        case .retry: "retry"
        case .nextSource: "nextSource"
        case .giveUp: "giveUp"
        case .startOver: "startOver"
        case .returnChunk: "returnChunk"
        }
    }
}
