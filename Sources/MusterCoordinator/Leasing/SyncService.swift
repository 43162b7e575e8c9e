import FoundationEssentials
import Logging
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore

/// The coordinator's side of the lease protocol (`docs/protocol.md`): sessions and syncs.
struct SyncService: Sendable {
    let store: any LeaseStore
    let dispatcher: ClaimDispatcher
    let reports: ReportBatcher
    let configuration: CoordinatorConfiguration
    let metrics: CoordinatorMetrics
    let budgets: BudgetWatch
    let asked: AskedSessions
    let handout: LeaseHandout
    let checks: CheckDesk

    init(
        store: any LeaseStore, dispatcher: ClaimDispatcher, reports: ReportBatcher,
        configuration: CoordinatorConfiguration,
        metrics: CoordinatorMetrics, asked: AskedSessions, logger: Logger
    ) {
        self.store = store
        self.dispatcher = dispatcher
        self.reports = reports
        self.configuration = configuration
        self.metrics = metrics
        budgets = BudgetWatch(store: store)
        checks = CheckDesk(store: store)
        self.asked = asked
        handout = LeaseHandout(store: store, metrics: metrics, logger: logger)
    }

    /// Opens a session.
    func open(_ request: SessionRequest) async throws -> SessionDocument {
        try check(request)
        let labels = String(decoding: try JSONEncoder().encode(request.labels), as: UTF8.self)
        let session = try await store.openSession(
            SessionOpening(
                worker: request.name, version: ReportedText.clean(request.version), labels: labels,
                slots: Int32(request.slots), sinks: request.sinks, marks: request.marks ?? [:],
                replaced: request.replaced ?? [], bytesPerSecond: request.bytesPerSecond, previous: request.previous),
            timeToLive: configuration.sessionTimeToLive)
        metrics.add(.sessionsOpened)
        return SessionDocument(
            id: session.id, ttlMilliseconds: configuration.sessionTimeToLive.milliseconds,
            installation: try await store.installation(), marks: session.marks)
    }

    /// Adds a sink to a session that was opened without it, since its directory was refused.
    func add(_ request: SessionSinkRequest, to session: SessionID) async throws -> SessionSinkDocument {
        guard NameRule.accepts(request.name) else {
            throw InputRefusal(pointer: "/name", reason: NameRule.explanation)
        }
        guard request.mark.map(Self.isPlain) ?? true else {
            throw InputRefusal(pointer: "/mark", reason: "must be a short text")
        }
        let added = try await store.addSink(
            request.name, mark: request.mark, isReplaced: request.isReplaced ?? false, to: session)
        guard let added else { throw Problem(.sessionNotFound, "open a new session") }
        return SessionSinkDocument(mark: added.mark)
    }

    /// Ends a session: at the worker's own request, or at that of another process which knows that the worker is gone.
    func close(_ session: SessionID, isLost: Bool) async throws {
        if isLost {
            try await store.expireSession(session)
        } else {
            try await store.closeSession(session)
        }
    }

    /// Answers a sync: renews the session, writes its reports, repairs what a lost answer left behind, and grants leases.
    func sync(_ session: SessionID, _ request: SyncRequest) async throws -> SyncResponse {
        try check(request)
        metrics.add(.syncs)
        let received = min(max(0, request.receivedBytes), Limits.receivedPerSync.bytes)
        metrics.add(.bytesReceived, Int(received))
        let sinks = Self.sinks(request.sinks)
        let status = String(decoding: try JSONEncoder().encode(sinks), as: UTF8.self)
        let renewal = SessionRenewal(
            session: session, sequence: request.sequence, sinkStatus: status, receivedBytes: received)
        guard
            let renewed = try await store.renew(
                renewal, settled: request.settled, held: request.held, timeToLive: configuration.sessionTimeToLive)
        else { throw Problem(.sessionNotFound, "open a new session") }
        metrics.add(.leasesRepaired, Int(renewed.repaired))

        if let revoked = request.revoked, !revoked.isEmpty {
            try await store.settleRevocations(revoked.map { (sink: $0.sink, session: $0.session) })
        }
        var lost = renewed.lost
        var refused: [RefusedReport] = []
        var deferred: [LeaseName] = []
        if !request.reports.isEmpty {
            let answer = try await reports.submit(.init(session: session, reports: request.reports))
            lost += answer.lost
            refused = answer.refused
            deferred = answer.deferred
        }
        // A superseded sync is about an earlier page, and a session that is to leave looks at nothing.
        let isAsked = renewed.isNewest && !renewed.isDraining
        let page =
            try await isAsked
            ? checks.page(for: session, reaching: request.sinks.map(\.name), report: request.check) : nil
        var shares = try await settle(session, request)
        var leases: [GrantedLease] = []
        let spare = request.spare ?? false
        let asks = request.room > 0 || request.ahead ?? 0 > 0 || spare || request.waitMilliseconds > 0
        if renewed.isNewest, !renewed.isDraining, asks {
            // Reports are answered at once; only a sync that has nothing to say waits for work.
            var wait: Duration =
                request.reports.isEmpty && lost.isEmpty
                ? min(configuration.longPoll, .milliseconds(max(0, request.waitMilliseconds))) : .zero
            // A session with shares of byte budgets waits for at most a second, to learn soon of changes, and not at all if
            // its shares have changed.
            if !shares.isEmpty { wait = min(wait, .seconds(1)) }
            if Self.areNews(shares, to: request.traffic ?? []) { wait = .zero }
            // A session that is asked to shrink a chunk is told at once, too.
            if asked.isUrgent(session) { wait = .zero }
            // Nor does a new page of a check wait for work.
            if let page, page.kind != .goOn { wait = .zero }
            leases = try await dispatcher.claim(
                session: session, sequence: request.sequence,
                room: Int32(clamping: min(request.room, Limits.leasesPerSync)),
                ahead: Int32(clamping: min(request.ahead ?? 0, Limits.leasesPerSync)), spare: spare, wait: wait)
        }
        // The granted leases may draw from budgets that the session had no share of before.
        if leases.contains(where: \.isLimited) { shares = try await store.budgetShares(of: session) }
        return SyncResponse(
            lost: Array(Set(lost)), refused: refused, deferred: deferred.isEmpty ? nil : deferred,
            shrink: try await shrinkWishes(of: session),
            leases: await handout.documents(of: leases), drain: renewed.isDraining,
            ttlMilliseconds: configuration.sessionTimeToLive.milliseconds,
            budgets: shares.isEmpty
                ? nil : shares.map { BudgetShare(name: $0.budget, bytesPerSecond: $0.bytesPerSecond) },
            addresses: configuration.addressGuard.refusesPrivate ? configuration.addressGuard : nil, check: page)
    }

    /// The chunks that the session is asked to shrink.
    private func shrinkWishes(of session: SessionID) async throws -> [Shrink] {
        guard asked.contains(session) else { return [] }
        let wishes = try await store.shrinkWishes(of: session)
        asked.settle(session, isAsked: !wishes.isEmpty)
        return wishes.map {
            Shrink(
                lease: $0.lease, end: $0.end, isFurther: $0.isFurther ? true : nil,
                isUntouched: $0.isUntouched ? true : nil)
        }
    }

    /// Stores what the session used of byte budgets, and returns its shares now; nothing where there are no budgets.
    private func settle(_ session: SessionID, _ request: SyncRequest) async throws -> [StoredShare] {
        // A name that no budget can have is ignored.
        let traffic = (request.traffic ?? []).filter { Self.isText($0.budget) }
        guard try await budgets.isNeeded() || !traffic.isEmpty else { return [] }
        return try await store.settleBudgets(
            session, sequence: request.sequence,
            use: traffic.map {
                BudgetUse(
                    budget: $0.budget, bytes: max(0, $0.bytes), bytesPerSecond: $0.bytesPerSecond.map { max(0, $0) },
                    isShort: $0.isShort ?? true)
            })
    }

    /// Whether these shares differ from those that the worker said it keeps to.
    private static func areNews(_ shares: [StoredShare], to traffic: [Traffic]) -> Bool {
        let known = Dictionary(traffic.map { ($0.budget, $0.bytesPerSecond ?? 0) }) { max($0, $1) }
        return shares.contains { $0.bytesPerSecond != known[$0.budget] ?? 0 }
            || known.contains { name, rate in rate > 0 && !shares.contains { $0.budget == name } }
    }

    private func check(_ request: SessionRequest) throws(InputRefusal) {
        guard NameRule.accepts(request.name) else { throw InputRefusal(pointer: "/name", reason: NameRule.explanation) }
        guard (1...Limits.sinksPerWorker).contains(request.sinks.count) else {
            throw InputRefusal(pointer: "/sinks", reason: "must be 1 to \(Limits.sinksPerWorker) sinks")
        }
        for (index, sink) in request.sinks.enumerated() where !NameRule.accepts(sink) {
            throw InputRefusal(pointer: "/sinks/\(index)", reason: NameRule.explanation)
        }
        guard (request.marks ?? [:]).allSatisfy({ request.sinks.contains($0.key) && Self.isPlain($0.value) }) else {
            throw InputRefusal(pointer: "/marks", reason: "must have a short text for each of some sinks")
        }
        guard (request.replaced ?? []).allSatisfy(request.sinks.contains) else {
            throw InputRefusal(pointer: "/replaced", reason: "must name some of the sinks")
        }
        guard Limits.slots.contains(request.slots) else {
            throw InputRefusal(pointer: "/slots", reason: "must be within \(Limits.slots)")
        }
        guard request.bytesPerSecond.map(Limits.bytesPerSecond.contains) ?? true else {
            throw InputRefusal(pointer: "/bytesPerSecond", reason: "must be within \(Limits.bytesPerSecond)")
        }
        guard request.previous.map({ $0.rawValue > 0 }) ?? true else {
            throw InputRefusal(pointer: "/previous", reason: "must be the id of a session")
        }
        guard request.labels.count <= 64, request.labels.allSatisfy({ Self.isPlain($0.key) && Self.isPlain($0.value) })
        else {
            throw InputRefusal(pointer: "/labels", reason: "at most 64 labels of at most 200 printable characters")
        }
    }

    private static func isPlain(_ text: String) -> Bool {
        text.utf8.count <= Limits.nameCharacters && text.unicodeScalars.allSatisfy { $0.value >= 32 }
    }

    /// Refuses a sync that no worker can have sent. Values that a worker may have from an origin, a resolver or an
    /// operating system are not checked here: the worker would repeat them for ever, and its session would starve.
    private func check(_ request: SyncRequest) throws(Problem) {
        guard request.sequence > 0, request.settled >= 0 else {
            throw Problem(.invalidRequest, "must be positive, and settled not negative", pointer: "/sequence")
        }
        guard request.settled < request.sequence else {
            throw Problem(.conflict, "must be greater than settled", pointer: "/sequence")
        }
        guard request.reports.count <= Limits.reportsPerSync else {
            throw Problem(.invalidRequest, "at most \(Limits.reportsPerSync) reports", pointer: "/reports")
        }
        guard request.held.count <= Limits.heldPerSync else {
            throw Problem(.invalidRequest, "at most \(Limits.heldPerSync) leases", pointer: "/held")
        }
        guard request.traffic?.count ?? 0 <= Limits.heldPerSync else {
            throw Problem(.invalidRequest, "at most \(Limits.heldPerSync) budgets", pointer: "/traffic")
        }
        guard request.sinks.count <= Limits.sinksPerWorker else {
            throw Problem(.invalidRequest, "at most \(Limits.sinksPerWorker) sinks", pointer: "/sinks")
        }
        if let report = request.check { try CheckDesk.check(report) }
        guard request.revoked?.count ?? 0 <= Limits.heldPerSync else {
            throw Problem(.invalidRequest, "at most \(Limits.heldPerSync) sessions", pointer: "/revoked")
        }
        for (index, revoked) in (request.revoked ?? []).enumerated() {
            guard NameRule.accepts(revoked.sink) else {
                throw Problem(.invalidRequest, NameRule.explanation, pointer: "/revoked/\(index)/sink")
            }
            guard revoked.session.rawValue > 0 else {
                throw Problem(.invalidRequest, "must be the id of a session", pointer: "/revoked/\(index)/session")
            }
        }
    }

    /// The state of sinks as it can be stored and shown.
    private static func sinks(_ sinks: [SinkStatus]) -> [SinkStatus] {
        sinks.filter { NameRule.accepts($0.name) }.map { sink in
            var sink = sink
            sink.detail = sink.detail.map(ReportedText.clean)
            return sink
        }
    }

    private static func isText(_ text: String) -> Bool {
        text.utf8.count <= 2_000 && !text.utf8.contains(0)
    }
}
