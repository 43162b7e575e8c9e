import MusterStore
import MusterSystem

/// Knows whether there are byte budgets. It asks the database at most once a second, so that syncs cost nothing where no
/// rate is set. A rate that was set since then reaches running leases a second later; new leases are granted under it at
/// once.
actor BudgetWatch {
    private let store: any LeaseStore
    private let clock: MonotonicClock
    private var hasBudgets = false
    private var askedAt: Int64?

    init(store: any LeaseStore, clock: MonotonicClock = .system) {
        self.store = store
        self.clock = clock
    }

    /// Whether a sync has to settle its budgets.
    func isNeeded() async throws -> Bool {
        let now = clock.now()
        if let askedAt, now - askedAt < 1_000_000_000 { return hasBudgets }
        // Calls that come while this one asks get the cached answer.
        askedAt = now
        do {
            hasBudgets = try await store.hasBudgets()
        } catch {
            askedAt = nil
            throw error
        }
        return hasBudgets
    }
}
