import MusterCore
import MusterPostgres
import Synchronization

@testable import MusterStore
@testable import MusterStoreModel

/// The database as one coordinator reaches it: statements take time, fail, or are carried out without an answer (F5, F6, F12).
final class SimulatedStore: LeaseStore {
    /// What happens to statements.
    struct Weather: Sendable {
        /// Of a thousand statements, how many find no connection.
        var unreachable: Int64 = 0
        /// Of a thousand, how many are carried out or not, and get no answer.
        var unknown: Int64 = 0
        /// Of a thousand, how many the database cancels for taking too long.
        var cancelled: Int64 = 0
    }

    private let database: SimulatedDatabase
    private let process: SimulatedProcess
    private let weather = Mutex(Weather())
    /// Called after a commit after which there may be work.
    private let onWork: @Sendable () -> Void

    init(_ database: SimulatedDatabase, of process: SimulatedProcess, onWork: @escaping @Sendable () -> Void) {
        self.database = database
        self.process = process
        self.onWork = onWork
    }

    /// Changes what happens to statements.
    func become(_ weather: Weather) { self.weather.withLock { $0 = weather } }

    /// Tells the coordinator that there may be work.
    func wake() { onWork() }

    private var simulation: Simulation { process.simulation }

    /// Runs a statement. One that changes something is repeated when its outcome is unknown, unless it must run once.
    private func run<Value: Sendable>(
        once: Bool = false, waking: Bool = false, _ body: (inout SimulatedDatabase.State) -> Value
    ) async throws -> Value {
        for attempt in 0..<3 {
            let weather = weather.withLock { $0 }
            try await simulation.sleep(until: simulation.now + simulation.random(100_000...4_000_000))
            guard !process.isDead else { throw CancellationError() }
            if simulation.chance(weather.unreachable) {
                throw PostgresError.connection(.init(kind: .unreachable, message: "by the simulation"))
            }
            if simulation.chance(weather.cancelled) {
                try await simulation.sleep(until: simulation.now + 15_000_000_000)
                throw PostgresError.server(.init(sqlState: .queryCanceled, message: "by the simulation"))
            }
            let isUnknown = simulation.chance(weather.unknown)
            var value: Value?
            if !isUnknown || simulation.chance(500) { value = database.transaction(body) }
            if isUnknown {
                database.transaction { $0.count("the outcome of a commit was unknown") }
                guard once || attempt == 2 else { continue }
                throw PostgresError.connection(
                    .init(kind: .lost, message: "by the simulation", outcome: .unknown))
            }
            guard let value else { continue }
            try await simulation.sleep(until: simulation.now + simulation.random(100_000...2_000_000))
            if waking { onWork() }
            return value
        }
        throw PostgresError.connection(.init(kind: .lost, message: "by the simulation", outcome: .unknown))
    }

    /// Runs a statement on leases of some groups, which waits for the locks of these in vain if a long transaction has them.
    private func run<Value: Sendable>(
        on leases: [LeaseName], _ body: (inout SimulatedDatabase.State) -> Value
    ) async throws -> Value {
        let isLocked = database.transaction { state in
            leases.contains { lease in state.granted[lease].map { state.locked.contains($0.group) } ?? false }
        }
        if isLocked {
            try await simulation.sleep(until: simulation.now + 1_000_000_000)
            throw PostgresError.server(.init(sqlState: .lockNotAvailable, message: "by the simulation"))
        }
        return try await run(waking: true, body)
    }

    private func expiry(_ timeToLive: Duration) -> Int64 {
        simulation.now + timeToLive.components.seconds * 1_000_000_000
    }

    func openSession(_ opening: SessionOpening, timeToLive: Duration) async throws -> OpenedSession {
        try await run(once: true) { $0.open(opening, until: self.expiry(timeToLive)) }
    }

    func addSink(_ sink: String, mark: String?, isReplaced: Bool, to session: SessionID) async throws -> AddedSink? {
        try await run { state in
            guard state.sessions[session] != nil else { return nil }
            if state.mark == nil { state.mark = mark }
            return AddedSink(mark: state.mark)
        }
    }

    func installation() async throws -> String { database.installation }

    func renew(
        _ renewal: SessionRenewal, settled: Int64, held: [LeaseName], timeToLive: Duration
    ) async throws -> RenewedSession? {
        try await run(waking: true) {
            $0.renew(renewal, settled: settled, held: held, until: self.expiry(timeToLive))
        }
    }

    func settleRevocations(_ revoked: [(sink: String, session: SessionID)]) async throws {
        let sessions = revoked.map(\.session)
        try await run { $0.revocations.subtract(sessions) }
    }

    func closeSession(_ session: SessionID) async throws {
        try await run(waking: true) { state in
            state.sessions[session] = nil
            state.model.end(session, isLost: false)
        }
    }

    func expireSession(_ session: SessionID) async throws {
        try await run { $0.sessions[session]?.expires = .min }
    }

    func claim(_ requests: [ClaimRequest]) async throws -> [GrantedLease] {
        try await run(once: true) { $0.claim(requests) { self.simulation.chance($0) } }
    }

    func helpStragglers(_ idle: [ClaimRequest]) async throws -> StragglerHelp {
        try await run(once: true) { $0.help(idle) { self.simulation.random($0) } }
    }

    func shrinkingSessions() async throws -> Set<SessionID> {
        try await run { state in Set(state.currentWishes().compactMap { state.granted[$0.lease]?.session }) }
    }

    func shrinkWishes(of session: SessionID) async throws -> [ShrinkWish] {
        try await run { state in state.currentWishes().filter { state.granted[$0.lease]?.session == session } }
    }

    func lockedLeases(_ chunks: [ChunkID]) async throws -> Set<ChunkID> {
        try await run { state in
            Set(
                chunks.filter { chunk in
                    state.granted.values.contains { $0.name.chunk == chunk && state.locked.contains($0.group) }
                })
        }
    }

    func report(progress reports: [LeaseReport.Progress]) async throws -> [LeaseReport.Progress] {
        guard !reports.isEmpty else { return [] }
        return try await run(on: reports.map(\.lease)) { state in reports.filter { !state.progress($0) } }
    }

    func report(learned report: LeaseReport.Learned) async throws -> Bool {
        try await run(on: [report.lease]) { $0.learn(report) }
    }

    func report(servedAgain lease: LeaseName, session: SessionID) async throws {}

    func report(done reports: [LeaseReport.Done]) async throws {
        guard !reports.isEmpty else { return }
        try await run(on: reports.map(\.lease)) { state in for report in reports { state.done(report) } }
    }

    func report(finished reports: [LeaseReport.Finished]) async throws {
        guard !reports.isEmpty else { return }
        try await run(on: reports.map(\.lease)) { state in for report in reports { state.finish(report) } }
    }

    func report(released reports: [LeaseReport.Progress], session: SessionID) async throws {
        guard !reports.isEmpty else { return }
        try await run(on: reports.map(\.lease)) { state in for report in reports { state.release(report) } }
    }

    func report(shrunk lease: LeaseName, end: Int64, speed: Int64?, session: SessionID) async throws -> ShrinkOutcome {
        try await run(on: [lease]) { $0.shrink(lease, to: end, by: session) }
    }

    func report(failed reports: [LeaseReport.Failed]) async throws {
        guard !reports.isEmpty else { return }
        try await run(on: reports.map(\.progress.lease)) { state in for report in reports { state.fail(report) } }
    }

    /// No group of a history has a resolver.
    func report(resolved report: LeaseReport.Resolved) async throws {}

    func report(restart lease: LeaseName, on rung: Rung, detail: String, session: SessionID) async throws {
        try await run(on: [lease]) { $0.restart(lease, on: rung, by: session) }
    }

    func report(unreadable lease: LeaseName, of session: SessionID, detail: String) async throws {
        database.transaction { $0.complaints.append("a lease can't be read: \(detail)") }
    }

    /// No history has byte budgets or checks.
    func hasBudgets() async throws -> Bool { false }
    func settleBudgets(_ session: SessionID, sequence: Int64, use: [BudgetUse]) async throws -> [StoredShare] { [] }
    func budgetShares(of session: SessionID) async throws -> [StoredShare] { [] }
    func openWalks() async throws -> [OpenWalk] { [] }
    func checkStep(of session: SessionID, report: CheckReport?) async throws -> CheckOrder? { nil }
}
