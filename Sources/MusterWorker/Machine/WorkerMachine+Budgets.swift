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
        let used = untoldTraffic.merging(shares.mapValues { _ in 0 }) { bytes, _ in bytes }
        untoldTraffic = [:]
        return used.sorted { $0.key < $1.key }.map { Traffic(budget: $0.key, bytes: $0.value) }
    }

    /// A sync had no answer: what it counted is counted in the next one.
    mutating func takeBack(_ sync: SyncInFlight) {
        untoldBytes += sync.receivedBytes
        for traffic in sync.traffic where traffic.bytes > 0 {
            untoldTraffic[traffic.budget, default: 0] += traffic.bytes
        }
    }
}
