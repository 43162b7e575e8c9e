import MusterCore
import MusterStore

/// A worker that draws from byte budgets: it keeps to the shares of the last answer that it received, and reports those.
struct BudgetPayer: Sendable {
    /// A sync on its way: it reports the shares that the worker kept to when it was sent.
    struct Sync: Sendable {
        let sequence: Int64
        let use: [BudgetUse]
    }

    var worker: TestWorker
    /// The shares that the worker keeps to, by budget, in bytes per second.
    private(set) var keeps: [String: Int64] = [:]

    init(_ worker: TestWorker) {
        self.worker = worker
    }

    /// Asks for work with its next sync; granted leases come with its shares.
    mutating func claim(_ room: Int32 = 1) async throws -> [GrantedLease] {
        try await worker.sync()
        return try await claimAgain(room)
    }

    /// Asks for work with its newest sync.
    mutating func claimAgain(_ room: Int32 = 1) async throws -> [GrantedLease] {
        let leases = try await worker.claimAgain(room)
        if !leases.isEmpty { keeps = Self.byName(try await worker.store.budgetShares(of: worker.session)) }
        return leases
    }

    /// Sends its next sync, which reports that it used so many bytes of each share, and whether it had to wait for them.
    mutating func send(used: Int64, isShort: Bool = true) async throws -> Sync {
        try await worker.sync()
        return Sync(
            sequence: worker.sequence,
            use: keeps.map { BudgetUse(budget: $0.key, bytes: used, bytesPerSecond: $0.value, isShort: isShort) })
    }

    /// Delivers a sync to the coordinator; returns the shares in the answer.
    func arrive(_ sync: Sync) async throws -> [String: Int64] {
        Self.byName(
            try await worker.store.settleBudgets(worker.session, sequence: sync.sequence, use: sync.use))
    }

    /// Receives an answer.
    mutating func hear(_ answer: [String: Int64]) { keeps = answer }

    /// Sends its next sync and receives the answer; returns its shares.
    @discardableResult
    mutating func settle(used: Int64, isShort: Bool = true) async throws -> [String: Int64] {
        let sync = try await send(used: used, isShort: isShort)
        keeps = try await arrive(sync)
        return keeps
    }

    /// Shifts the worker's last report of its use to a second ago.
    func passSecond() async throws {
        try await worker.fixture.set(.budgetUse, ago: .seconds(1), of: worker.session.rawValue)
    }

    private static func byName(_ shares: [StoredShare]) -> [String: Int64] {
        Dictionary(uniqueKeysWithValues: shares.map { ($0.budget, $0.bytesPerSecond) })
    }
}

extension StoreFixture {
    /// A worker that draws from byte budgets.
    func makePayer(_ name: String = "worker", slots: Int32 = 8) async throws -> BudgetPayer {
        BudgetPayer(try await makeWorker(name, slots: slots))
    }
}
