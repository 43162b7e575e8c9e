import FoundationEssentials
import Logging
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore

/// Turns the reports of many syncs into few statements, and says afterwards what is new.
struct ReportWriter: Sendable {
    let store: Store
    let planner: ChunkPlanner
    let metrics: CoordinatorMetrics
    let logger: Logger
    /// A random number within `0..<1`, for the jitter of retries.
    let random: @Sendable () -> Double
    /// Called once per batch, after it is committed: whether there may be new work, and whether the log has grown.
    let written: @Sendable (_ hasWork: Bool, _ hasEvents: Bool) async -> Void

    /// Writes the reports of several syncs. Returns, for each, the leases that were lost.
    func write(_ submissions: [ReportBatcher.Submission]) async -> [Result<[LeaseName], any Error>] {
        let all = submissions.flatMap { submission in submission.reports.map { (submission.session, $0) } }
        metrics.add(.reports, all.count)
        do {
            let lost = try await write(all)
            metrics.add(.staleReports, lost.count)
            let bySession = Dictionary(grouping: lost, by: \.session)
            return submissions.map { .success((bySession[$0.session] ?? []).map(\.lease)) }
        } catch let error as PostgresError where !error.isUnavailable && submissions.count > 1 {
            // Something in the batch can't be stored. Each sync on its own, so that only the culprit is refused.
            logger.error("batch of reports refused", metadata: [CoordinatorMetadata.error: "\(error)"])
            var results: [Result<[LeaseName], any Error>] = []
            for submission in submissions { results += await write([submission]) }
            return results
        } catch {
            return submissions.map { _ in .failure(error) }
        }
    }

    /// The order matters within one lease alone: what was learned comes before what follows from it.
    private func write(_ reports: [(SessionID, Report)]) async throws -> [LeaseReport.Progress] {
        var lost: [LeaseReport.Progress] = []
        for case (let session, let report) in reports {
            guard let learned = report.learned, report.finished == nil else { continue }
            if try await !write(learned: learned, of: report, session: session) {
                lost.append(progress(report, session))
            }
        }
        // Whoever has shrunk a chunk says so before anything else that follows from it.
        var shrunk = 0
        for case (let session, let report) in reports where report.kind == .shrunk {
            switch try await store.report(shrunk: report.lease, end: report.end ?? .max, session: session) {
            case .agreed: shrunk += 1
            case .kept: break
            case .lost: lost.append(progress(report, session))
            }
        }
        metrics.add(.shrinksAgreed, shrunk)
        lost += try await store.report(
            progress: reports.filter { $0.1.kind == .progress }.map { progress($0.1, $0.0) })

        let done = reports.filter { $0.1.kind == .done && $0.1.finished == nil }
        let doublesWon = try await store.report(
            done: done.map { LeaseReport.Done(session: $0.0, lease: $0.1.lease, crc: $0.1.durable?.crc ?? 0) })
        let finished = try reports.compactMap { try self.finished($0.1, $0.0) }
        try await store.report(finished: finished)
        metrics.add(.chunksDone, done.count)
        metrics.add(.doublesWon, doublesWon)
        metrics.add(.tasksFinished, finished.count)
        for file in finished where file.reusedFrom != nil {
            metrics.add(.tasksReused)
            metrics.add(.bytesReused, Int(clamping: file.size))
        }

        let released = Dictionary(grouping: reports.filter { $0.1.kind == .released }, by: \.0)
        for (session, group) in released {
            try await store.report(released: group.map { progress($0.1, session) }, session: session)
        }
        var failures = 0
        for (session, report) in reports {
            switch report.kind {
            case .failed:
                failures += 1
                try await write(failure: report, session: session)
            case .restart:
                failures += 1
                let detail = ReportedText.clean(report.failure?.detail ?? "ranges do not work")
                try await store.report(restart: report.lease, detail: detail, session: session)
            case .resolved:
                if try await !write(resolved: report, session: session) { failures += 1 }
            case .progress, .done, .released, .shrunk: break
            }
        }
        metrics.add(.leasesFailed, failures)
        let hasWork =
            !done.isEmpty || !released.isEmpty || failures > 0 || shrunk > 0
            || reports.contains { $0.1.learned != nil || $0.1.kind == .resolved }
        await written(hasWork, !finished.isEmpty || failures > 0)
        return lost
    }

    private func write(learned: Report.Learned, of report: Report, session: SessionID) async throws -> Bool {
        let representation = ReportedText.representation(learned.representation)
        // How many transfers can share the file is not worth a question to the database for each: the chunk's size only has
        // to be right within a factor of two or so.
        let size = representation.size ?? 0
        return try await store.report(
            learned: LeaseReport.Learned(
                session: session, lease: report.lease, representation: representation,
                isSplittable: learned.splittable, effectiveURL: learned.effectiveURL.map(ReportedText.clean),
                suggestedName: ReportedText.name(learned.suggestedName),
                chunkSize: planner.chunkSize(size: size, parallelism: 16)))
    }

    private func write(failure report: Report, session: SessionID) async throws {
        let failure = report.failure ?? Report.Failure(kind: .network, detail: "no reason given")
        try await store.report(
            failed: LeaseReport.Failed(
                progress: progress(report, session), kind: failure.kind, detail: ReportedText.clean(failure.detail),
                source: ReportedText.source(failure.source), retryAfter: ReportedText.retryAfter(failure.retryAfter),
                status: ReportedText.status(failure.status), requestID: ReportedText.requestID(failure.requestID),
                address: ReportedText.address(failure.address)),
            random: random())
    }

    /// A fresh URL counts from now on. An answer that can't be used is a failure of the resolver, and asked for again; returns
    /// whether it could.
    private func write(resolved report: Report, session: SessionID) async throws -> Bool {
        let url: SourceURL
        do {
            guard let answer = report.resolved else {
                throw InputRefusal(pointer: "", reason: "there is none")
            }
            url = try answer.checked()
        } catch let refusal as InputRefusal {
            var failed = report
            failed.failure = Report.Failure(
                kind: .authentication, detail: "the resolver's answer can't be used: \(refusal)")
            try await write(failure: failed, session: session)
            return false
        }
        let headers = report.resolved?.headers.flatMap { $0.isEmpty ? nil : $0 }
        try await store.report(
            resolved: LeaseReport.Resolved(
                session: session, lease: report.lease, url: url.string, origin: url.origin,
                headers: try StoredJSON.text(headers)))
        metrics.add(.urlsResolved)
        return true
    }

    private func progress(_ report: Report, _ session: SessionID) -> LeaseReport.Progress {
        LeaseReport.Progress(
            session: session, lease: report.lease, durable: report.durable ?? DurablePrefix(offset: 0, crc: 0))
    }

    private func finished(_ report: Report, _ session: SessionID) throws -> LeaseReport.Finished? {
        guard report.kind == .done, let finished = report.finished else { return nil }
        let digests = ReportedText.digests(finished.digests)
        return LeaseReport.Finished(
            session: session, lease: report.lease, size: max(0, finished.size),
            digests: String(decoding: try JSONEncoder().encode(digests), as: UTF8.self),
            representation: report.learned.map { ReportedText.representation($0.representation) },
            effectiveURL: report.learned?.effectiveURL.map(ReportedText.clean),
            path: ReportedText.path(finished.path),
            // What a report of a whole file says to be durable is all of it.
            crc: report.durable.flatMap { $0.offset == finished.size ? $0.crc : nil },
            reusedFrom: ReportedText.path(finished.reusedFrom))
    }
}
