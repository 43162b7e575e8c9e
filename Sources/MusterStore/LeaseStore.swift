public import MusterCore

/// What checks need of the store in the lease protocol (adr/0048).
public protocol CheckStore: Sendable {
    /// See `Store`.
    func openWalks() async throws -> [OpenWalk]
    /// See `Store`.
    func checkStep(of session: SessionID, report: CheckReport?) async throws -> CheckOrder?
}

/// What the lease protocol needs of the store: sessions, grants and reports. `Store` is the real one, and documents each verb; the simulation
/// has the store's reference model in its place (adr/0050).
public protocol LeaseStore: CheckStore {
    /// See `Store`.
    func openSession(_ opening: SessionOpening, timeToLive: Duration) async throws -> OpenedSession
    /// See `Store`.
    func addSink(_ sink: String, mark: String?, isReplaced: Bool, to session: SessionID) async throws -> AddedSink?
    /// See `Store`.
    func installation() async throws -> String
    /// See `Store`.
    func renew(
        _ renewal: SessionRenewal, settled: Int64, held: [LeaseName], timeToLive: Duration
    ) async throws -> RenewedSession?
    /// See `Store`.
    func settleRevocations(_ revoked: [(sink: String, session: SessionID)]) async throws
    /// See `Store`.
    func closeSession(_ session: SessionID) async throws
    /// See `Store`.
    func expireSession(_ session: SessionID) async throws

    /// See `Store`.
    func claim(_ requests: [ClaimRequest]) async throws -> [GrantedLease]
    /// See `Store`.
    func helpStragglers(_ idle: [ClaimRequest]) async throws -> StragglerHelp
    /// See `Store`.
    func shrinkingSessions() async throws -> Set<SessionID>
    /// See `Store`.
    func shrinkWishes(of session: SessionID) async throws -> [ShrinkWish]
    /// See `Store`.
    func lockedLeases(_ chunks: [ChunkID]) async throws -> Set<ChunkID>

    /// See `Store`.
    func report(progress reports: [LeaseReport.Progress]) async throws -> [LeaseReport.Progress]
    /// See `Store`.
    func report(learned report: LeaseReport.Learned) async throws -> Bool
    /// See `Store`.
    func report(servedAgain lease: LeaseName, session: SessionID) async throws
    /// See `Store`.
    func report(done reports: [LeaseReport.Done]) async throws
    /// See `Store`.
    func report(finished reports: [LeaseReport.Finished]) async throws
    /// See `Store`.
    func report(released reports: [LeaseReport.Progress], session: SessionID) async throws
    /// See `Store`.
    func report(shrunk lease: LeaseName, end: Int64, speed: Int64?, session: SessionID) async throws -> ShrinkOutcome
    /// See `Store`.
    func report(failed reports: [LeaseReport.Failed]) async throws
    /// See `Store`.
    func report(resolved report: LeaseReport.Resolved) async throws
    /// See `Store`.
    func report(restart lease: LeaseName, on rung: Rung, detail: String, session: SessionID) async throws
    /// See `Store`.
    func report(unreadable lease: LeaseName, of session: SessionID, detail: String) async throws

    /// See `Store`.
    func hasBudgets() async throws -> Bool
    /// See `Store`.
    func settleBudgets(_ session: SessionID, sequence: Int64, use: [BudgetUse]) async throws -> [StoredShare]
    /// See `Store`.
    func budgetShares(of session: SessionID) async throws -> [StoredShare]
}

extension Store: LeaseStore {}
