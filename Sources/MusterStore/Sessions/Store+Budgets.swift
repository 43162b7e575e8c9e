public import MusterCore
import MusterPostgres

/// What a session used of one byte budget.
public struct BudgetUse: Sendable, Hashable {
    /// The budget's name.
    public let budget: String
    /// Bytes since the last settled sync.
    public let bytes: Int64
    /// The share that the session kept to when it reported, in bytes per second; `nil` if it knew of no share.
    public let bytesPerSecond: Int64?
    /// Whether a transfer had to wait for the budget.
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
    /// Bytes per second; 0 while other sessions use the whole budget.
    public let bytesPerSecond: Int64

    /// A row of `budget` and `offer`.
    init(_ row: PostgresRow) throws {
        budget = try row.decode("budget")
        bytesPerSecond = try row.decode("offer")
    }
}

/// Byte budgets: rates of groups, of origins and of the fleet. Shares of them are handed out with the syncs. The sum of all
/// shares of a budget never exceeds its rate.
extension Store {
    /// Whether there is a byte budget, or a session that still has a share of a former one. It is cheap and meant to be
    /// called once a second: syncs ask for nothing where there is no budget, and the shares of ended sessions are freed.
    public func hasBudgets() async throws -> Bool {
        let isSo: Bool = try await write("SELECT has_budgets() AS is_so", waking: [])[0].decode("is_so")
        return isSo || policy.fleetRate != nil
    }

    /// Counts what a session has used up to a sync, and returns its shares from now on: one for each budget that its leases
    /// draw from. A share that was made smaller counts in full until the session reports that it keeps to less.
    public func settleBudgets(
        _ session: SessionID, sequence: Int64, use: [BudgetUse]
    ) async throws -> [StoredShare] {
        try await write(
            """
            SELECT budget, offer FROM settle_budgets(\(session), \(sequence), \(policy.fleetRate), \(use.map(\.budget)),
                \(use.map(\.bytes)), \(use.map(\.bytesPerSecond)), \(use.map(\.isShort)))
            """, waking: []
        ).map(StoredShare.init)
    }

    /// The present shares of a session.
    public func budgetShares(of session: SessionID) async throws -> [StoredShare] {
        try await query("SELECT budget, offer FROM budget_shares WHERE session_id = \(session) ORDER BY 1").map(
            StoredShare.init)
    }
}
