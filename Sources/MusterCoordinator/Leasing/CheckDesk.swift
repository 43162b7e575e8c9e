import MusterAPI
import MusterCore
import MusterStore
import MusterSystem

/// Gives the pages of a check to the sessions that sync (adr/0048). Only the sync of a session that holds a walk, or may take
/// one, costs a statement: the database is asked at most once a second which walks have not ended.
actor CheckDesk {
    private let store: any CheckStore
    private let clock: MonotonicClock
    private var walks: [OpenWalk] = []
    private var askedAt: Int64?

    init(store: any CheckStore, clock: MonotonicClock = .system) {
        self.store = store
        self.clock = clock
    }

    /// Takes a session's report, and returns the page that it is to look at; `nil` if there is none.
    ///
    /// - Parameter sinks: the sinks that the session names in its sync; a session that names none may reach all.
    func page(for session: SessionID, reaching sinks: [String], report: CheckReport?) async throws -> CheckOrder? {
        let mayLook = try await openWalks().contains { walk in
            if let holder = walk.holder { return holder == session }
            return sinks.isEmpty || sinks.contains(walk.sink)
        }
        guard mayLook || report != nil else { return nil }
        return try await store.checkStep(of: session, report: report.map(Self.cleaned))
    }

    private func openWalks() async throws -> [OpenWalk] {
        let now = clock.now()
        if let askedAt, now - askedAt < 1_000_000_000 { return walks }
        // Calls that come while this one asks get the cached answer.
        askedAt = now
        do {
            walks = try await store.openWalks()
        } catch {
            askedAt = nil
            throw error
        }
        return walks
    }

    /// Refuses a report that no worker can have sent.
    static func check(_ report: CheckReport) throws(Problem) {
        guard NameRule.accepts(report.sink) else {
            throw Problem(.invalidRequest, NameRule.explanation, pointer: "/check/sink")
        }
        guard report.files?.count ?? 0 <= Limits.checkPage, report.parts?.count ?? 0 <= Limits.checkNames,
            report.sessions?.count ?? 0 <= Limits.checkNames,
            report.installations?.count ?? 0 <= Limits.checkInstallations
        else {
            throw Problem(.invalidRequest, "more than a page has", pointer: "/check")
        }
        guard (0...Int64(Limits.checkNames)).contains(report.looked), report.bytes >= 0,
            report.bytes <= Limits.fileSize.bytes, (0...Int64(Limits.checkPage)).contains(report.unproven)
        else {
            throw Problem(.invalidRequest, "impossible numbers", pointer: "/check")
        }
    }

    /// The report as it can be stored.
    private static func cleaned(_ report: CheckReport) -> CheckReport {
        var report = report
        report.files = report.files?.map { file in
            var file = file
            file.detail = ReportedText.clean(file.detail)
            return file
        }
        report.installations = report.installations?.map(ReportedText.clean)
        report.last = report.last.map(ReportedText.clean)
        return report
    }
}
