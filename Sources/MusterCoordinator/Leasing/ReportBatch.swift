import FoundationEssentials
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore

/// The reports of several syncs on their way into the store. Reports that can't be stored are left out.
struct ReportBatch {
    /// A report and its session.
    struct Entry: Sendable {
        let session: SessionID
        var report: Report
    }

    /// A lease of a session.
    fileprivate struct Holding: Hashable {
        let session: SessionID
        let lease: LeaseName
    }

    private let entries: [Entry]
    private var refusedLeases: Set<Holding> = []
    private var deferredLeases: Set<Holding> = []
    /// Finds the chunks, among these, whose groups are locked.
    private let locked: @Sendable ([ChunkID]) async throws -> Set<ChunkID>
    /// The reports that can't be stored, and why.
    private(set) var refused: [(entry: Entry, flaw: ReportFlaw)] = []
    /// The leases that the reporting sessions did not hold any more.
    var lost: [LeaseReport.Progress] = []

    /// A batch. Reports with impossible values are refused at once.
    ///
    /// - Parameter locked: finds the leases of locked groups.
    init(
        _ submissions: [ReportBatcher.Submission],
        locked: @escaping @Sendable ([ChunkID]) async throws -> Set<ChunkID> = { _ in [] }
    ) {
        self.locked = locked
        entries = submissions.flatMap { submission in
            submission.reports.map { Entry(session: submission.session, report: $0) }
        }
        for entry in entries {
            if let flaw = ReportFlaw(entry.report) { refuse(entry, flaw) }
        }
    }

    /// The entries that may still be stored, in the order of arrival: none of a lease with a refused report, and none of a
    /// deferred lease.
    var pending: [Entry] {
        if refusedLeases.isEmpty, deferredLeases.isEmpty { return entries }
        return entries.filter { !refusedLeases.contains($0.holding) && !deferredLeases.contains($0.holding) }
    }

    /// Whether the reports of any lease are deferred.
    var hasDeferred: Bool { !deferredLeases.isEmpty }

    /// Defers the entries of locked groups, and returns the rest.
    @discardableResult
    mutating func deferLocked(_ entries: [Entry]) async throws -> [Entry] {
        let locked = try await locked(entries.map(\.report.chunk))
        for entry in entries where locked.contains(entry.report.chunk) { deferredLeases.insert(entry.holding) }
        return entries.filter { !locked.contains($0.report.chunk) }
    }

    /// The answer for the sync of a session.
    func answer(for session: SessionID) -> ReportWriter.Answer {
        ReportWriter.Answer(
            lost: lost.filter { $0.session == session }.map(\.lease),
            deferred: deferredLeases.filter { $0.session == session }.map(\.lease),
            refused: refused.filter { $0.entry.session == session }.map {
                RefusedReport(lease: $0.entry.report.lease, reason: $0.flaw.reason)
            })
    }

    /// Writes one report. Returns `nil` if it is refused or deferred.
    @discardableResult
    mutating func attempt<Value>(_ entry: Entry, _ body: () async throws -> Value) async throws -> Value? {
        guard !deferredLeases.contains(entry.holding) else { return nil }
        do {
            return try await body()
        } catch let error as PostgresError where error.isOfData {
            refuse(entry, .refused(error.sqlState ?? .other("")))
            return nil
        } catch let error as PostgresError where error.sqlState == .lockNotAvailable {
            deferredLeases.insert(entry.holding)
            // The other entries of its group must not wait for a second each.
            try await deferLocked(pending)
            return nil
        }
    }

    /// Writes reports with one statement. Where the database refuses it for its data, the halves are written instead, until
    /// the bad reports are isolated: one bad report among n takes 2 log n statements. Returns the results of `body` for all
    /// of them.
    mutating func divide<Value>(_ entries: [Entry], _ body: ([Entry]) async throws -> [Value]) async throws -> [Value] {
        guard let first = entries.first else { return [] }
        do {
            return try await body(entries)
        } catch let error as PostgresError where error.isOfData {
            guard entries.count > 1 else {
                refuse(first, .refused(error.sqlState ?? .other("")))
                return []
            }
            let middle = entries.count / 2
            return try await divide(Array(entries[..<middle]), body) + divide(Array(entries[middle...]), body)
        } catch let error as PostgresError where error.sqlState == .lockNotAvailable {
            let rest = try await deferLocked(entries)
            // The lock was released just now. Defer all entries, since it is unknown which lock comes next.
            guard rest.count < entries.count else {
                for entry in entries { deferredLeases.insert(entry.holding) }
                return []
            }
            return try await divide(rest, body)
        }
    }

    private mutating func refuse(_ entry: Entry, _ flaw: ReportFlaw) {
        // Refused once for a lease, however many of its reports can't be stored.
        guard refusedLeases.insert(entry.holding).inserted else { return }
        refused.append((entry, flaw))
    }
}

extension ReportBatch.Entry {
    fileprivate var holding: ReportBatch.Holding { .init(session: session, lease: report.lease) }

    /// The progress of the lease as the store's type.
    var progress: LeaseReport.Progress {
        LeaseReport.Progress(
            session: session, lease: report.lease, durable: report.durable ?? DurablePrefix(offset: 0, crc: 0))
    }

    /// The report of a chunk that is durable to its end.
    var done: LeaseReport.Done {
        LeaseReport.Done(
            session: session, lease: report.lease, crc: report.durable?.crc ?? 0, end: report.durable?.offset,
            removed: report.removed)
    }

    /// The failure of the lease, if it failed. A resolver's answer that can't be used is a failure, and the resolver is
    /// asked again.
    var failure: Report.Failure? {
        switch report.kind {
        case .failed: return report.failure
        case .resolved:
            do {
                guard let answer = report.resolved else { throw InputRefusal(pointer: "", reason: "there is none") }
                _ = try answer.checked()
                return nil
            } catch {
                return Report.Failure(kind: .authentication, detail: "the resolver's answer can't be used: \(error)")
            }
        case .progress, .done, .released, .shrunk, .restart, .servedAgain: return nil
        }
    }

    /// The failure as the store's type.
    func failed(random: Double) -> LeaseReport.Failed? {
        failure.map {
            // For a permanent refusal, the origin's Retry-After is ignored (row 25).
            let isHeeded = $0.status.map(FailureKind.isTransient) ?? true
            return LeaseReport.Failed(
                progress: progress, kind: $0.kind, detail: ReportedText.clean($0.detail),
                source: ReportedText.source($0.source),
                retryAfter: isHeeded ? ReportedText.retryAfter($0.retryAfter) : nil,
                status: ReportedText.status($0.status), requestID: ReportedText.requestID($0.requestID),
                address: ReportedText.address($0.address), isUnreached: $0.unreached == true,
                isUnanswered: $0.unanswered == true, isElsewhere: $0.elsewhere == true, isLimit: $0.isLimit,
                isUnserved: $0.unserved == true,
                servedAtOnce: Int32(clamping: max(0, $0.servedAtOnce ?? 0)),
                random: random)
        }
    }

    /// The report of a file that stands at its path.
    func finished() throws -> LeaseReport.Finished? {
        guard let finished = report.finished else { return nil }
        let digests = ReportedText.digests(finished.digests)
        return LeaseReport.Finished(
            session: session, lease: report.lease, size: finished.size,
            digests: String(decoding: try JSONEncoder().encode(digests), as: UTF8.self),
            representation: report.learned.map { ReportedText.representation($0.representation) },
            effectiveURL: report.learned?.effectiveURL.map(ReportedText.clean),
            path: ReportedText.path(finished.path),
            // The report of a whole file counts its durable bytes only if these are all of the file.
            crc: report.durable.flatMap { $0.offset == finished.size ? $0.crc : nil },
            reusedFrom: ReportedText.path(finished.reusedFrom),
            isUnasked: finished.wasThere == true && report.learned == nil)
    }
}
