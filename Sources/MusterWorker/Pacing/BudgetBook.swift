import MusterAPI
import MusterCore
import MusterCurl
import Synchronization

/// The byte budgets of this worker's transfers: the fleet's budgets by name, each at the worker's share of it, and the
/// worker's own budget.
///
/// Every transfer is tied to all budgets that may apply to its lease, including those without a rate now. So a limit that
/// is set while it runs applies from the next sync on.
final class BudgetBook: Sendable {
    private struct Entry: Sendable {
        let budget = ByteBudget()
        /// How many running leases it applies to.
        var leases = 0
        /// Whether the last sync answer named it.
        var isShared = false

        var isNeeded: Bool { leases > 0 || isShared }
    }

    private let own: ByteBudget?
    private let entries = Mutex<[String: Entry]>([:])
    /// Whether there may be traffic to report, so that a worker without limits need not search for it.
    private let hasShares = Atomic<Bool>(false)

    /// A book without shares.
    ///
    /// - Parameter bytesPerSecond: the rate that the worker keeps to by itself, if any.
    init(bytesPerSecond: Int64? = nil) {
        own = bytesPerSecond.map { ByteBudget(bytesPerSecond: $0) }
    }

    /// The budgets for the transfers of a lease, in use until `leave` is called for it.
    func enter(_ lease: LeaseDocument) -> [ByteBudget] {
        let named = entries.withLock { entries in
            lease.budgetNames.map { name in
                entries[name, default: Entry()].leases += 1
                return entries[name]?.budget
            }
        }
        return named.compactMap { $0 } + (own.map { [$0] } ?? [])
    }

    /// Notes that the work on a lease is over.
    func leave(_ lease: LeaseDocument) {
        entries.withLock { entries in
            for name in lease.budgetNames {
                entries[name]?.leases -= 1
                if entries[name]?.isNeeded == false { entries[name] = nil }
            }
        }
    }

    /// Adopts the worker's complete list of shares: budgets that are not in it no longer limit.
    func adopt(_ shares: [BudgetShare]) {
        let rates = Dictionary(shares.map { ($0.name, $0.bytesPerSecond) }) { min($0, $1) }
        entries.withLock { entries in
            for name in rates.keys where entries[name] == nil { entries[name] = Entry() }
            for name in Array(entries.keys) {
                entries[name]?.budget.limit(to: rates[name])
                entries[name]?.isShared = rates[name] != nil
                if entries[name]?.isNeeded == false { entries[name] = nil }
            }
        }
        hasShares.store(!shares.isEmpty, ordering: .releasing)
    }

    /// What was used of the shares since the last call, by budget name. Budgets that were neither used nor waited for are
    /// left out.
    func takeTraffic() -> [Traffic] {
        guard hasShares.load(ordering: .acquiring) else { return [] }
        return entries.withLock { entries in
            entries.compactMap { name, entry in
                let use = entry.budget.takeUse()
                guard use.bytes > 0 || use.isShort else { return nil }
                return Traffic(budget: name, bytes: use.bytes, isShort: use.isShort)
            }
        }
    }
}

extension LeaseDocument {
    /// The fleet's budgets that may apply to the work on the lease; none for work that fetches nothing from a source.
    var budgetNames: [String] {
        guard kind == .fetch else { return [] }
        let named = [group.map(BudgetShare.name(group:)), origin.map(BudgetShare.name(origin:))]
        return named.compactMap { $0 } + [BudgetShare.fleet]
    }
}
