import MusterAPI
import MusterCore

// The worker's shares of byte budgets: what it uses of them travels with every sync, and every answer says what they are now.
extension WorkerMachine {
    /// Takes in the shares of an answer, all of them.
    ///
    /// The answer to a sync that a later one has superseded may be outdated: it can add a budget, for leases that it
    /// brings, but does not change known budgets.
    mutating func takeShares(_ answer: [BudgetShare], isSuperseded: Bool) {
        let stated = Dictionary(answer.map { ($0.name, $0.bytesPerSecond) }) { min($0, $1) }
        let now = isSuperseded ? shares.merging(stated) { known, _ in known } : stated
        guard now != shares else { return }
        // A smaller share helps other sessions only once the coordinator knows that this worker keeps to it.
        if now.contains(where: { $0.value < shares[$0.key] ?? 0 }) { tellNews() }
        shares = now
        tellShares()
    }

    /// The session is over: its shares may belong to other sessions, and nothing is fetched for it any more.
    mutating func loseShares() {
        untoldTraffic = [:]
        guard !shares.isEmpty else { return }
        shares = [:]
        tellShares()
    }

    private mutating func tellShares() {
        let list = shares.sorted { $0.key < $1.key }.map { BudgetShare(name: $0.key, bytesPerSecond: $0.value) }
        effects.append(.share(list))
    }

    /// What a sync reports of the use of budgets: of every budget with a share, even if nothing was used.
    mutating func takeTraffic() -> [Traffic] {
        let used = untoldTraffic
        untoldTraffic = [:]
        return Set(used.keys).union(shares.keys).sorted().map { name in
            Traffic(
                budget: name, bytes: used[name]?.bytes ?? 0, bytesPerSecond: shares[name],
                isShort: used[name]?.isShort ?? false)
        }
    }

    /// Counts the use of budgets for the next sync.
    mutating func count(_ used: [Traffic]) {
        for traffic in used {
            let before = untoldTraffic[traffic.budget]
            untoldTraffic[traffic.budget] = Traffic(
                budget: traffic.budget, bytes: traffic.bytes + (before?.bytes ?? 0),
                isShort: traffic.isShort == true || before?.isShort == true)
        }
    }

    /// A sync had no answer: what it counted is counted in the next one.
    mutating func takeBack(_ sync: SyncInFlight) {
        untoldBytes += sync.receivedBytes
        count(sync.traffic.filter { $0.bytes > 0 || $0.isShort == true })
    }
}
