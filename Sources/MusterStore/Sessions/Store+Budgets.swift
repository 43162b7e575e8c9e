public import MusterCore
import MusterPostgres

/// What a session used of one byte budget.
public struct BudgetUse: Sendable, Hashable {
    /// The budget's name.
    public let budget: String
    /// Bytes since the last settled sync.
    public let bytes: Int64

    /// Use of a budget.
    public init(budget: String, bytes: Int64) {
        self.budget = budget
        self.bytes = bytes
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
    /// second, so that syncs ask nothing where there is none.
    public func hasBudgets() async throws -> Bool {
        if policy.fleetRate != nil { return true }
        return try await query("SELECT has_budgets() AS is_so")[0].decode("is_so")
    }

    /// Counts what a session used by a sync, and finds its shares from now on: all of those that its leases draw from.
    ///
    /// - Parameter settled: the sync up to which the worker has every answer. A share that was made smaller by an answer after
    ///   that still counts in full.
    public func settleBudgets(
        _ session: SessionID, sequence: Int64, settled: Int64, use: [BudgetUse]
    ) async throws -> [StoredShare] {
        try await query(
            """
            SELECT budget, offer FROM settle_budgets(\(session), \(sequence), \(settled), \(policy.fleetRate),
                \(use.map(\.budget)), \(use.map(\.bytes)))
            """
        ).map(StoredShare.init)
    }

    /// A session's shares as they stand.
    public func budgetShares(of session: SessionID) async throws -> [StoredShare] {
        try await query("SELECT budget, offer FROM budget_shares WHERE session_id = \(session) ORDER BY 1").map(
            StoredShare.init)
    }
}
