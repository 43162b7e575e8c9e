import MusterAPI
import MusterCore

/// A lease whose job has ended because the sink failed while a file was put in place or deleted (I13).
struct Unsettled: Sendable, Hashable {
    /// What the sink failed with.
    let trouble: SinkTrouble
    /// When the job ended.
    let since: Int64
    /// Whether a probe began since then.
    var isProbed = false
}

/// Leases whose moves and deletions may not be on storage. If another lease finished the task, nothing would delete a part that a loss of power brings back.
/// So such a lease is given back only once a probe has synced the directories. If that takes too long, the session is given up: before the task goes on, its
/// successors revoke it in the sink, and the part is handed back (adr/0017).
extension WorkerMachine {
    /// Keeps a lease whose job has ended, unless its session is over.
    mutating func keepUnsettled(_ name: LeaseName, of lease: HeldLease, _ trouble: SinkTrouble, _ now: Int64) {
        guard !lease.isSessionOver else {
            leases.remove(name)
            return tellNews()
        }
        if !lease.isStopping { leases.move(name, to: .finishing) }
        leases.setUnsettled(name, Unsettled(trouble: trouble, since: now))
        park(lease.sink, trouble, now)
    }

    /// Notes that a probe of a sink begins: it makes durable what was done before.
    mutating func noteProbe(of sink: String) {
        for (name, unsettled) in unsettled(in: sink) {
            leases.setUnsettled(name, Unsettled(trouble: unsettled.trouble, since: unsettled.since, isProbed: true))
        }
    }

    /// Gives back the leases that were unsettled when the probe began that has ended. Returns whether none is left.
    mutating func settle(_ sink: String, _ now: Int64) -> Bool {
        var isAll = true
        for (name, unsettled) in unsettled(in: sink) {
            guard unsettled.isProbed, let lease = leases[name] else {
                isAll = false
                continue
            }
            if lease.isStopping {
                leases.remove(name)
                tellNews()
            } else {
                giveBack(name, of: lease, after: unsettled.trouble, now)
            }
        }
        return isAll
    }

    /// Ends a lease that the sink has prevented from being worked on.
    mutating func giveBack(
        _ name: LeaseName, of lease: HeldLease, after trouble: SinkTrouble, _ now: Int64,
        durable: DurablePrefix? = nil, learned: Report.Learned? = nil
    ) {
        leases.move(name, to: .ended)
        if lease.kind == .purge {
            // A purge that is released would be granted again at once, since purges are granted for a full sink, too. As a failure it waits.
            let failure = Report.Failure(kind: trouble.kind, detail: trouble.detail)
            ledger.add(Report(lease: name, kind: .failed, failure: failure), now: now)
        } else {
            ledger.add(Report(lease: name, kind: .released, durable: durable, learned: learned), now: now)
        }
    }

    /// Gives the session up if a sink has kept leases unsettled for too long: other workers may reach it.
    mutating func giveUpUnsettled(_ index: Int, _ now: Int64) {
        guard let since = unsettled(in: sinks[index].name).map(\.1.since).min() else { return }
        giveUpSession(index, since: since, now)
    }

    private func unsettled(in sink: String) -> [(LeaseName, Unsettled)] {
        leases.names.compactMap { name in
            guard let lease = leases[name], lease.sink == sink, let unsettled = lease.unsettled else { return nil }
            return (name, unsettled)
        }
    }
}
