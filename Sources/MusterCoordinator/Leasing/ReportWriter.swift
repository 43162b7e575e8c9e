import FoundationEssentials
import Logging
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle
import Synchronization

/// Turns the reports of many syncs into few statements.
struct ReportWriter: Sendable {
    /// What a sync is told of its reports.
    struct Answer: Sendable {
        /// The leases that the session did not hold any more.
        var lost: [LeaseName] = []
        /// The leases whose reports were not stored, since their groups are locked for long.
        var deferred: [LeaseName] = []
        /// The reports that can't be stored, whose leases have failed.
        var refused: [RefusedReport] = []
    }

    /// The state that one batch passes to the next one.
    private final class Delay: Sendable {
        /// Whether the last batch deferred reports of a locked group. Then the next batch asks for locked groups first, and
        /// waits for none.
        let isHeldUp = Atomic(false)
    }

    let store: any LeaseStore
    let planner: ChunkPlanner
    let metrics: CoordinatorMetrics
    let logger: Logger
    /// A random number within `0..<1`, for the jitter of retries.
    let random: @Sendable () -> Double
    /// What is known of locked groups.
    private let delay = Delay()

    init(
        store: any LeaseStore, planner: ChunkPlanner, metrics: CoordinatorMetrics, logger: Logger,
        random: @escaping @Sendable () -> Double
    ) {
        self.store = store
        self.planner = planner
        self.metrics = metrics
        self.logger = logger
        self.random = random
    }

    /// Writes the reports of several syncs.
    ///
    /// A report that can't be stored is refused by itself: its lease fails, and all others are stored (I19).
    func write(_ submissions: [ReportBatcher.Submission]) async -> [Result<Answer, any Error>] {
        metrics.add(.reports, submissions.reduce(0) { $0 + $1.reports.count })
        return await metrics.time(.reports) { await attempt(submissions) }
    }

    private func attempt(_ submissions: [ReportBatcher.Submission]) async -> [Result<Answer, any Error>] {
        do {
            var batch = ReportBatch(submissions) { [store] in try await store.lockedLeases($0) }
            if delay.isHeldUp.load(ordering: .relaxed) { try await batch.deferLocked(batch.pending) }
            try await write(&batch)
            if batch.hasDeferred != delay.isHeldUp.exchange(batch.hasDeferred, ordering: .relaxed), batch.hasDeferred {
                logger.warning("A group is locked for long: reports on it wait")
            }
            for (entry, flaw) in batch.refused { try await refuse(entry, flaw) }
            metrics.add(.staleReports, batch.lost.count)
            metrics.add(.reportsRefused, batch.refused.count)
            return submissions.map { .success(batch.answer(for: $0.session)) }
        } catch let error as PostgresError where !error.isUnavailable && submissions.count > 1 {
            // The cause is not the data of a report, but something that a part of the reports waits for in vain, such as a
            // lock. Write each sync's reports separately, so that the other syncs get their answer.
            logger.error("batch of reports not written", metadata: [CoordinatorMetadata.error: "\(error)"])
            var results: [Result<Answer, any Error>] = []
            for submission in submissions { results += await attempt([submission]) }
            return results
        } catch {
            return submissions.map { _ in .failure(error) }
        }
    }

    /// The order matters within one lease alone: what was learned comes before the reports that depend on it.
    private func write(_ batch: inout ReportBatch) async throws {
        for entry in batch.pending where entry.report.finished == nil {
            guard let learned = entry.report.learned else { continue }
            let isHeld = try await batch.attempt(entry) { try await write(learned: learned, of: entry) }
            if isHeld == false { batch.lost.append(entry.progress) }
        }
        // The report of a shrunk chunk comes before the reports that depend on it.
        for entry in batch.pending where entry.report.kind == .shrunk {
            guard let end = entry.report.end else { continue }
            switch try await batch.attempt(
                entry,
                {
                    try await store.report(
                        shrunk: entry.report.lease, end: end, speed: entry.report.speed, session: entry.session)
                })
            {
            case .agreed?: metrics.add(.shrinksAgreed)
            case .kept?, nil: break
            case .lost?: batch.lost.append(entry.progress)
            }
        }
        let moved = batch.pending.filter { $0.report.kind == .progress }
        let gone = try await batch.divide(moved) { try await store.report(progress: $0.map(\.progress)) }
        batch.lost += gone
        try await write(ended: &batch)
        try await write(failed: &batch)
        for entry in batch.pending { try await batch.attempt(entry) { try await write(single: entry) } }
    }

    /// Writes the chunks that are durable to their ends, the files that are in place, and the leases that are given back.
    private func write(ended batch: inout ReportBatch) async throws {
        let done = batch.pending.filter { $0.report.kind == .done && $0.report.finished == nil }
        _ = try await batch.divide(done) { entries in
            try await store.report(done: entries.map(\.done))
            metrics.add(.chunksDone, entries.count)
            return []
        }
        let finished = batch.pending.filter { $0.report.kind == .done && $0.report.finished != nil }
        _ = try await batch.divide(finished) { entries in
            let files = try entries.compactMap { try $0.finished() }
            try await store.report(finished: files)
            metrics.add(.tasksFinished, files.count)
            for file in files where file.reusedFrom != nil {
                metrics.add(.tasksReused)
                metrics.add(.bytesReused, Int(clamping: file.size))
            }
            return []
        }
        let released = Dictionary(grouping: batch.pending.filter { $0.report.kind == .released }, by: \.session)
        for (session, entries) in released {
            _ = try await batch.divide(entries) { entries in
                try await store.report(released: entries.map(\.progress), session: session)
                return []
            }
        }
    }

    /// Writes a report that has its own statement.
    private func write(single entry: ReportBatch.Entry) async throws {
        switch entry.report.kind {
        case .restart:
            let detail = ReportedText.clean(
                entry.report.failure?.detail ?? "it contradicts the way in which it was asked")
            try await store.report(
                restart: entry.report.lease, on: entry.report.rung ?? .whole, detail: detail, session: entry.session)
            metrics.add(.leasesFailed)
        case .resolved: try await write(resolved: entry)
        case .servedAgain: try await store.report(servedAgain: entry.report.lease, session: entry.session)
        case .progress, .done, .released, .shrunk, .failed: break
        }
    }

    private func write(learned: Report.Learned, of entry: ReportBatch.Entry) async throws -> Bool {
        let representation = ReportedText.representation(learned.representation)
        // It is not worth a query for each file to find how many transfers can share it: the chunk's size only has to be
        // right within a factor of two or so.
        let size = representation.size ?? 0
        return try await store.report(
            learned: LeaseReport.Learned(
                session: entry.session, lease: entry.report.lease, representation: representation,
                rung: learned.rung, effectiveURL: learned.effectiveURL.map(ReportedText.clean),
                suggestedName: ReportedText.name(learned.suggestedName), askedForAll: learned.askedForAll == true,
                chunkSize: planner.chunkSize(size: size, parallelism: 16)))
    }

    /// Writes the leases that failed.
    private func write(failed batch: inout ReportBatch) async throws {
        let failed = batch.pending.filter { $0.failure != nil }
        _ = try await batch.divide(failed) { entries in
            let failures = entries.compactMap { $0.failed(random: random()) }
            try await store.report(failed: failures)
            metrics.add(.leasesFailed, failures.count)
            return []
        }
    }

    /// Stores a fresh URL, which is used from now on.
    private func write(resolved entry: ReportBatch.Entry) async throws {
        guard let answer = entry.report.resolved, let url = try? answer.checked() else { return }
        let headers = answer.headers.flatMap { $0.isEmpty ? nil : $0 }
        try await store.report(
            resolved: LeaseReport.Resolved(
                session: entry.session, lease: entry.report.lease, url: url.string, origin: url.origin,
                headers: try StoredJSON.text(headers)))
        metrics.add(.urlsResolved)
    }

    /// Fails the lease of a report that can't be stored, so that its tries are counted and end (I12). If the failure can't
    /// be stored either, the lease is given back. If that fails too, the worker does not hold the lease any more, and the
    /// session's next sync repairs that.
    private func refuse(_ entry: ReportBatch.Entry, _ flaw: ReportFlaw) async throws {
        logger.warning(
            "report refused",
            metadata: [
                CoordinatorMetadata.session: "\(entry.session)", CoordinatorMetadata.chunk: "\(entry.report.chunk)",
                CoordinatorMetadata.error: "\(flaw.reason)",
            ])
        // Nothing of the report is stored.
        let nothing = LeaseReport.Progress(
            session: entry.session, lease: entry.report.lease, durable: DurablePrefix(offset: 0, crc: 0))
        do {
            try await store.report(
                failed: [
                    LeaseReport.Failed(progress: nothing, kind: flaw.kind, detail: flaw.reason, random: random())
                ])
            metrics.add(.leasesFailed)
        } catch let error as PostgresError where error.isOfData || error.sqlState == .lockNotAvailable {
            do {
                try await store.report(released: [nothing], session: entry.session)
            } catch let error as PostgresError where error.isOfData || error.sqlState == .lockNotAvailable {
                logger.error(
                    "lease of a refused report not taken back",
                    metadata: [
                        CoordinatorMetadata.chunk: "\(entry.report.chunk)", CoordinatorMetadata.error: "\(error)",
                    ])
            }
        }
    }
}
