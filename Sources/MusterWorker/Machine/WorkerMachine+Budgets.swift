import MusterAPI
import MusterCore

// The worker's shares of byte budgets: what it uses of them travels with every sync, and every answer says what they are now.
extension WorkerMachine {
    /// Takes in the shares of an answer, all of them.
    ///
    /// The answer to a sync that a later one has superseded is older than it looks: it can add a budget, for leases that it
    /// brings, but says nothing about those that are known.
    mutating func takeShares(_ answer: [BudgetShare], isSuperseded: Bool) {
        let stated = Dictionary(answer.map { ($0.name, $0.bytesPerSecond) }) { min($0, $1) }
        let now = isSuperseded ? shares.merging(stated) { known, _ in known } : stated
        guard now != shares else { return }
        // What the worker has less of is of use to nobody before it is known that the worker keeps to that.
        if now.contains(where: { $0.value < shares[$0.key] ?? 0 }) { tellNews() }
        shares = now
        tellShares()
    }

    /// The session is over, and its shares are others' by now; nothing is fetched for it any more either.
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

    /// What a sync tells of the use of budgets: of every one that there is a share of, also when nothing was used.
    mutating func takeTraffic() -> [Traffic] {
        let used = untoldTraffic
        untoldTraffic = [:]
        return Set(used.keys).union(shares.keys).sorted().map { name in
            Traffic(
                budget: name, bytes: used[name]?.bytes ?? 0, bytesPerSecond: shares[name],
                isShort: used[name]?.isShort ?? false)
        }
    }

    /// Counts what is to be told by the next sync.
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
