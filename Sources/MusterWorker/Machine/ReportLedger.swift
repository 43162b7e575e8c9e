import MusterAPI
import MusterCore

/// The news that no answer has acknowledged yet: at most one report per lease, always the newest.
///
/// A later progress report replaces an earlier one and keeps what that had learned; a terminal report replaces both. The new end of a chunk is reported first
/// and alone: other news of the lease follows once the end is acknowledged, since the coordinator needs the end to understand it. A report is removed only
/// when a sync is answered that carried exactly this state of the report.
struct ReportLedger: Sendable {
    /// Names the state of one report that a sync carried.
    struct Receipt: Sendable, Hashable {
        let lease: LeaseName
        fileprivate let revision: Int64
    }

    private struct Entry {
        var report: Report
        /// What is to be reported after it; only `shrunk` has a successor.
        var next: Report?
        var revision: Int64
        /// Whether it is in a sync whose answer is awaited.
        var isCarried: Bool
        /// Whether the coordinator has deferred it.
        var isDeferred = false

        /// Whether it is worth a sync of its own: a lease ended, or something was learned.
        var isUrgent: Bool { !isDeferred && (report.kind != .progress || report.learned != nil) }
    }

    private var entries: [LeaseName: Entry] = [:]
    private var revisions: Int64 = 0
    /// How many reports call for a sync at once.
    private(set) var urgentCount = 0
    /// Since when a report waits that may be sent later.
    private(set) var waitingSince: Int64?

    /// Whether every report was acknowledged.
    var isEmpty: Bool { entries.isEmpty }
    /// How many reports are not acknowledged.
    var count: Int { entries.count }

    /// Adds a report, merged with the unacknowledged one of its lease.
    mutating func add(_ report: Report, now: Int64) {
        revisions += 1
        var entry = Entry(report: report, revision: revisions, isCarried: false)
        if let old = entries[report.lease] {
            switch (old.report.kind.place, report.kind.place) {
            // Nothing follows a terminal report of the same epoch.
            case (.last, _): return
            case (.running, .first): entry.next = old.report
            case (.running, .running), (.running, .last): entry.report = Self.merged(report, over: old.report)
            case (.first, .first):
                guard old.report != report else { return }
                entry.next = old.next
            case (.first, .running), (.first, .last):
                guard old.next?.kind.place != .last else { return }
                entries[report.lease]?.next = old.next.map { Self.merged(report, over: $0) } ?? report
                return
            }
        }
        // A report that is replaced again and again does not begin to wait anew each time.
        let since = waitingSince
        drop(report.lease)
        entries[report.lease] = entry
        if entry.isUrgent { urgentCount += 1 }
        waitingSince = since ?? now
    }

    private static func merged(_ report: Report, over old: Report) -> Report {
        var merged = report
        merged.learned = report.learned ?? old.learned
        // A report without an offset does not take back a known one.
        if let known = old.durable, (report.durable?.offset ?? -1) < known.offset { merged.durable = known }
        return merged
    }

    /// Forgets the reports of a lease.
    mutating func drop(_ name: LeaseName) {
        guard let entry = entries.removeValue(forKey: name) else { return }
        if entry.isUrgent, !entry.isCarried { urgentCount -= 1 }
        if entries.isEmpty { waitingSince = nil }
    }

    /// Takes up to `limit` reports for a sync: the urgent ones first, each kind in the order in which it came.
    mutating func carry(limit: Int, now: Int64) -> (reports: [Report], receipts: [Receipt]) {
        let waiting = entries.values.filter { !$0.isCarried }.sorted {
            $0.isUrgent == $1.isUrgent ? $0.revision < $1.revision : $0.isUrgent
        }
        var receipts: [Receipt] = []
        for entry in waiting.prefix(limit) {
            entries[entry.report.lease]?.isCarried = true
            if entry.isUrgent { urgentCount -= 1 }
            receipts.append(Receipt(lease: entry.report.lease, revision: entry.revision))
        }
        waitingSince = waiting.count > limit ? now : nil
        return (waiting.prefix(limit).map(\.report), receipts)
    }

    /// The answer to the sync that carried these has come. Returns the leases whose terminal report is acknowledged.
    mutating func acknowledge(_ receipts: [Receipt], now: Int64) -> [LeaseName] {
        var ended: [LeaseName] = []
        for receipt in receipts {
            guard let entry = entries[receipt.lease], entry.revision == receipt.revision else { continue }
            if entry.report.kind.place == .last { ended.append(receipt.lease) }
            drop(receipt.lease)
            if let next = entry.next { add(next, now: now) }
        }
        return ended
    }

    /// The coordinator could not store these reports yet: they wait for a later sync, and call for none at once.
    mutating func putOff(_ receipts: [Receipt], now: Int64) {
        for receipt in receipts {
            guard let entry = entries[receipt.lease], entry.revision == receipt.revision, entry.isCarried else {
                continue
            }
            entries[receipt.lease]?.isCarried = false
            entries[receipt.lease]?.isDeferred = true
            if waitingSince == nil { waitingSince = now }
        }
    }

    /// The sync that carried these had no answer: they wait again.
    mutating func restore(_ receipts: [Receipt], now: Int64) {
        for receipt in receipts {
            guard let entry = entries[receipt.lease], entry.revision == receipt.revision, entry.isCarried else {
                continue
            }
            entries[receipt.lease]?.isCarried = false
            if entry.isUrgent { urgentCount += 1 }
            if waitingSince == nil { waitingSince = now }
        }
    }

    /// Forgets everything: the session that it was about is over.
    mutating func removeAll() {
        entries = [:]
        urgentCount = 0
        waitingSince = nil
    }
}

/// Where a report stands among those of its lease.
private enum ReportPlace {
    /// Before all others.
    case first
    /// While the work goes on.
    case running
    /// It ends the lease.
    case last
}

extension Report.Kind {
    fileprivate var place: ReportPlace {
        switch self {
        case .shrunk: .first
        case .progress: .running
        case .done, .failed, .released, .restart, .resolved, .servedAgain: .last
        }
    }
}
