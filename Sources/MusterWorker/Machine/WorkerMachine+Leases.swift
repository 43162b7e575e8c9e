import MusterAPI
import MusterCore

extension WorkerMachine {
    /// How many more leases the worker takes now: its free slots, and while files are small a few more for each slot, so
    /// that no slot waits for a round trip between two files.
    var room: Int {
        guard case .working = course, sinks.contains(where: \.isWell) else { return 0 }
        let counts = leases.counts
        let free = configuration.slots + prefetch - counts.unfinished
        let bound = min(Limits.leasesPerSync, Limits.heldPerSync - counts.unfinished - counts.ended)
        return max(0, min(free, bound))
    }

    /// How many leases may wait for a slot: as many as are expected to be worth 1 MiB per slot. None before the first
    /// lease ended, since nobody knows yet how large the files are.
    private var prefetch: Int {
        guard let meanBytes else { return 0 }
        let most = (configuration.leasesPerSlot - 1) * configuration.slots
        let worth = Int64(configuration.slots) * configuration.prefetchBytesPerSlot / max(1, meanBytes)
        return Int(min(Int64(most), worth))
    }

    /// When a lease has waited too long for a slot.
    var queueDeadline: Int64? {
        leases.oldestQueued.map { $0 + configuration.queueTime.wholeNanoseconds }
    }

    /// Takes a granted lease in. A name that is known already was granted before: the answer was doubled.
    mutating func take(_ lease: LeaseDocument, _ now: Int64) {
        guard leases[lease.name] == nil else { return }
        leases.enqueue(lease, now: now)
        if course != .working || sink(lease.sink)?.isWell != true { giveBackUntouched(lease.name, now) }
    }

    /// Starts what waits, as long as there are slots; nothing while writing is suspended.
    mutating func startQueued(_ now: Int64) {
        guard case .open(let open) = session, !open.isSuspended, course == .working else { return }
        while leases.counts.occupying < configuration.slots, let lease = leases.startNext(where: isPayable) {
            effects.append(.start(lease))
        }
    }

    /// Whether a lease may begin as far as budgets go: not while its share of one is nothing yet.
    private func isPayable(_ lease: LeaseDocument) -> Bool {
        shares.isEmpty || lease.budgetNames.allSatisfy { shares[$0] != 0 }
    }

    /// Gives back what could not start in time, so that another worker can have it.
    mutating func expireQueue(_ now: Int64) {
        while let due = queueDeadline, due <= now {
            guard let name = leases.names.first(where: { isQueued($0, before: now) }) else { return }
            giveBackUntouched(name, now)
        }
    }

    private func isQueued(_ name: LeaseName, before now: Int64) -> Bool {
        guard case .queued(_, let since)? = leases[name]?.phase else { return false }
        return since + configuration.queueTime.wholeNanoseconds <= now
    }

    /// Gives back a lease that nothing was done about: what is durable stays as it was.
    mutating func giveBackUntouched(_ name: LeaseName, _ now: Int64) {
        leases.move(name, to: .ended)
        ledger.add(Report(lease: name, kind: .released), now: now)
    }

    /// The lease is not ours any more: stop, delete nothing, say nothing.
    mutating func takeAway(_ name: LeaseName) {
        guard let lease = leases[name] else { return }
        ledger.drop(name)
        switch lease.phase {
        case .queued, .ended: leases.remove(name)
        case .running, .finishing, .releasing:
            leases.move(name, to: .aborting)
            effects.append(.abort(name))
        case .aborting: break
        }
    }

    /// Asks a job to give its lease back, unless it was asked already.
    mutating func askToRelease(_ name: LeaseName, _ now: Int64) {
        switch leases[name]?.phase {
        case .queued?: giveBackUntouched(name, now)
        case .running?, .finishing?:
            leases.move(name, to: .releasing)
            effects.append(.release(name))
        case .releasing?, .aborting?, .ended?, nil: break
        }
    }

    /// Takes in what a job says.
    mutating func takeNews(_ name: LeaseName, _ news: JobNews, _ now: Int64) {
        guard let lease = leases[name] else { return }
        switch (news, lease.phase) {
        case (.ended, .aborting):
            leases.remove(name)
            // What is left of a cancelled task is deleted when it is known that nobody writes any more (I13).
            tellNews()
        case (.progress, .aborting), (.fetched, .aborting), (.shrunk, .aborting), (_, .ended), (_, .queued): break
        case (.shrunk(let end), .running), (.shrunk(let end), .finishing), (.shrunk(let end), .releasing):
            tellEnd(end, of: name, now)
        case (.progress(let durable, let learned), .running), (.progress(let durable, let learned), .finishing),
            (.progress(let durable, let learned), .releasing):
            ledger.add(Report(lease: name, kind: .progress, durable: durable, learned: learned), now: now)
        case (.fetched, .running): leases.move(name, to: .finishing)
        case (.fetched, .finishing), (.fetched, .releasing): break
        case (.ended(let ending), .running), (.ended(let ending), .finishing), (.ended(let ending), .releasing):
            end(name, ending, of: lease, now)
        }
    }

    private mutating func end(_ name: LeaseName, _ ending: JobEnding, of lease: HeldLease, _ now: Int64) {
        leases.move(name, to: .ended)
        switch ending {
        case .done(let durable, let learned, let finished, let bytes):
            // What only verifies or deletes says nothing about how large files are.
            if lease.kind == .fetch { meanBytes = meanBytes.map { $0 + (bytes - $0) / 8 } ?? bytes }
            ledger.add(
                Report(lease: name, kind: .done, durable: durable, learned: learned, finished: finished),
                now: now
            )
        case .resolved(let answer):
            ledger.add(Report(lease: name, kind: .resolved, resolved: answer), now: now)
        case .failed(let failure, let durable, let learned):
            ledger.add(
                Report(lease: name, kind: .failed, durable: durable, learned: learned, failure: failure),
                now: now
            )
        case .released(let durable, let learned):
            ledger.add(Report(lease: name, kind: .released, durable: durable, learned: learned), now: now)
        case .restart(let what):
            let failure = Report.Failure(kind: .badRange, detail: what)
            ledger.add(Report(lease: name, kind: .restart, failure: failure), now: now)
        case .sinkTrouble(let trouble, let durable, let learned):
            ledger.add(Report(lease: name, kind: .released, durable: durable, learned: learned), now: now)
            park(lease.sink, trouble, now)
        case .aborted:
            // Nobody told it to, so something ended it that will not come again: the lease goes back.
            ledger.add(Report(lease: name, kind: .released), now: now)
        }
    }
}
