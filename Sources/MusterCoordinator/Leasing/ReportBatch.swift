import FoundationEssentials
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore

/// The reports of several syncs on their way into the store, without those that turn out not to be storable.
struct ReportBatch {
    /// A report and who reports.
    struct Entry: Sendable {
        let session: SessionID
        var report: Report
    }

    /// What names a lease of somebody's.
    fileprivate struct Holding: Hashable {
        let session: SessionID
        let lease: LeaseName
    }

    private let entries: [Entry]
    private var refusedLeases: Set<Holding> = []
    private var deferredLeases: Set<Holding> = []
    /// Which of these leases are of a group that something has locked.
    private let locked: @Sendable ([ChunkID]) async throws -> Set<ChunkID>
    /// The reports that can't be stored, and why.
    private(set) var refused: [(entry: Entry, flaw: ReportFlaw)] = []
    /// The leases that were not their reporters' any more.
    var lost: [LeaseReport.Progress] = []

    /// A batch; what is impossible about a report is found at once.
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

    /// What may still be stored, in the order in which it came: of a lease with a refused report nothing, nor of one that is put off.
    var pending: [Entry] {
        if refusedLeases.isEmpty, deferredLeases.isEmpty { return entries }
        return entries.filter { !refusedLeases.contains($0.holding) && !deferredLeases.contains($0.holding) }
    }

    /// Whether something is put off.
    var hasDeferred: Bool { !deferredLeases.isEmpty }

    /// Puts off what is of a locked group, and returns the rest.
    @discardableResult
    mutating func deferLocked(_ entries: [Entry]) async throws -> [Entry] {
        let locked = try await locked(entries.map(\.report.chunk))
        for entry in entries where locked.contains(entry.report.chunk) { deferredLeases.insert(entry.holding) }
        return entries.filter { !locked.contains($0.report.chunk) }
    }

    /// What a sync is told.
    func answer(for session: SessionID) -> ReportWriter.Answer {
        ReportWriter.Answer(
            lost: lost.filter { $0.session == session }.map(\.lease),
            deferred: deferredLeases.filter { $0.session == session }.map(\.lease),
            refused: refused.filter { $0.entry.session == session }.map {
                RefusedReport(lease: $0.entry.report.lease, reason: $0.flaw.reason)
            })
    }

    /// Writes one report. Returns `nil` if it is refused or put off.
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
            // The others of its group need not wait for a second each.
            try await deferLocked(pending)
            return nil
        }
    }

    /// Writes reports with one statement. Where the database refuses it for its data, the halves are written instead, until the
    /// culprits stand alone: with one of them among n, in 2 log n statements. Returns what `body` does, of all of them.
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
            // The lock was released just now. All of them come again: what is locked next is not known.
            guard rest.count < entries.count else {
                for entry in entries { deferredLeases.insert(entry.holding) }
                return []
            }
            return try await divide(rest, body)
        }
    }

    private mutating func refuse(_ entry: Entry, _ flaw: ReportFlaw) {
        // Once for a lease, however many of its reports are of no use.
        guard refusedLeases.insert(entry.holding).inserted else { return }
        refused.append((entry, flaw))
    }
}

extension ReportBatch.Entry {
    fileprivate var holding: ReportBatch.Holding { .init(session: session, lease: report.lease) }

    /// How far the lease is, in the store's terms.
    var progress: LeaseReport.Progress {
        LeaseReport.Progress(
            session: session, lease: report.lease, durable: report.durable ?? DurablePrefix(offset: 0, crc: 0))
    }

    /// A chunk that is durable to its end.
    var done: LeaseReport.Done {
        LeaseReport.Done(
            session: session, lease: report.lease, crc: report.durable?.crc ?? 0, end: report.durable?.offset,
            removed: report.removed)
    }

    /// Why the lease could not be fulfilled, if it could not. A resolver's answer that can't be used is a failure, and is asked for again.
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

    /// The same in the store's terms.
    func failed(random: Double) -> LeaseReport.Failed? {
        failure.map {
            // What is refused for good is not waited for, whatever the origin wishes (row 25).
            let isHeeded = $0.status.map(FailureKind.isTransient) ?? true
            return LeaseReport.Failed(
                progress: progress, kind: $0.kind, detail: ReportedText.clean($0.detail),
                source: ReportedText.source($0.source),
                retryAfter: isHeeded ? ReportedText.retryAfter($0.retryAfter) : nil,
                status: ReportedText.status($0.status), requestID: ReportedText.requestID($0.requestID),
                address: ReportedText.address($0.address), isUnreached: $0.unreached == true,
                isUnanswered: $0.unanswered == true, isLimit: $0.isLimit, isUnserved: $0.unserved == true,
                random: random)
        }
    }

    /// A file that stands at its path.
    func finished() throws -> LeaseReport.Finished? {
        guard let finished = report.finished else { return nil }
        let digests = ReportedText.digests(finished.digests)
        return LeaseReport.Finished(
            session: session, lease: report.lease, size: finished.size,
            digests: String(decoding: try JSONEncoder().encode(digests), as: UTF8.self),
            representation: report.learned.map { ReportedText.representation($0.representation) },
            effectiveURL: report.learned?.effectiveURL.map(ReportedText.clean),
            path: ReportedText.path(finished.path),
            // What a report of a whole file says to be durable is all of it.
            crc: report.durable.flatMap { $0.offset == finished.size ? $0.crc : nil },
            reusedFrom: ReportedText.path(finished.reusedFrom))
    }
}
