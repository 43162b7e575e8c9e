public import MusterCore
import MusterPostgres

/// What a session used of one byte budget.
public struct BudgetUse: Sendable, Hashable {
    /// The budget's name.
    public let budget: String
    /// Bytes since the last settled sync.
    public let bytes: Int64
    /// The share that it kept to when it said so, in bytes per second; `nil` when it knew of none.
    public let bytesPerSecond: Int64?
    /// Whether something had to wait for the budget.
    public let isShort: Bool

    /// Use of a budget.
    public init(budget: String, bytes: Int64, bytesPerSecond: Int64?, isShort: Bool) {
        self.budget = budget
        self.bytes = bytes
        self.bytesPerSecond = bytesPerSecond
        self.isShort = isShort
    }
}

/// A session's share of a byte budget.
public struct StoredShare: Sendable, Hashable {
    /// The budget's name: `group:<name>`, `origin:<key>` or `fleet`.
    public let budget: String
    /// Bytes per second; 0 while everything is in use by others.
    public let bytesPerSecond: Int64

    /// A row of `budget` and `offer`.
    init(_ row: PostgresRow) throws {
        budget = try row.decode("budget")
        bytesPerSecond = try row.decode("offer")
    }
}

/// Byte budgets: rates of groups, of origins and of the fleet, whose shares are handed out with the syncs. The shares of a
/// budget never exceed its rate together.
extension Store {
    /// Whether there is any byte budget, or was one that some session still has a share of. Cheap; meant to be asked once a
    /// second, so that syncs ask nothing where there is none, and so that what sessions had that are over is free again.
    public func hasBudgets() async throws -> Bool {
        let isSo: Bool = try await write("SELECT has_budgets() AS is_so", waking: .nobody)[0].decode("is_so")
        return isSo || policy.fleetRate != nil
    }

    /// Counts what a session used by a sync, and finds its shares from now on: all of those that its leases draw from. A share
    /// that was made smaller counts in full until the session says that it keeps to less.
    public func settleBudgets(
        _ session: SessionID, sequence: Int64, use: [BudgetUse]
    ) async throws -> [StoredShare] {
        try await write(
            """
            SELECT budget, offer FROM settle_budgets(\(session), \(sequence), \(policy.fleetRate), \(use.map(\.budget)),
                \(use.map(\.bytes)), \(use.map(\.bytesPerSecond)), \(use.map(\.isShort)))
            """, waking: .nobody
        ).map(StoredShare.init)
    }

    /// A session's shares as they stand.
    public func budgetShares(of session: SessionID) async throws -> [StoredShare] {
        try await query("SELECT budget, offer FROM budget_shares WHERE session_id = \(session) ORDER BY 1").map(
            StoredShare.init)
    }
}
