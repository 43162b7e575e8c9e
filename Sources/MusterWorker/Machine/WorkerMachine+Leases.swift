import MusterAPI
import MusterCore

extension WorkerMachine {
    /// How many more transfers the worker can begin now: its free slots, without those that what waits could use.
    var room: Int {
        guard takesWork else { return 0 }
        return max(0, min(freeSlots - leases.startable, bound))
    }

    /// How many transfers more may begin. What is being made durable and put in place takes no slot, but holds a file open.
    private var freeSlots: Int {
        let counts = leases.counts
        return min(
            configuration.slots - counts.occupying,
            MachineConfiguration.jobsPerSlot * configuration.slots - counts.occupying - counts.finishing)
    }

    /// How many leases it takes besides, to have them wait in its lanes: so many that no lane waits for a round trip between two transfers.
    var ahead: Int {
        guard takesWork else { return 0 }
        return max(0, min(prefetch - (leases.counts.queued - leases.startable), bound - room))
    }

    private var takesWork: Bool {
        if case .working = course { sinks.contains { $0.takes(.purge) } } else { false }
    }

    private var bound: Int {
        min(Limits.leasesPerSync, Limits.heldPerSync - leases.counts.unfinished - leases.counts.ended)
    }

    /// How many leases may wait: for each lane as many as bridge two round trips, so that no lane is idle until the next answer; none where
    /// that would be less than a twentieth of a transfer. None before the first transfer has ended, since it is not known yet how long they take.
    private var prefetch: Int {
        guard let meanTime, let roundTrip else { return 0 }
        let mean = max(1, meanTime)
        let bridging = (40 * roundTrip + 19 * mean) / (20 * mean)
        let lanes = min(configuration.slots, max(1, leases.laneCount))
        return lanes * Int(min(Int64(configuration.leasesPerLane - 1), bridging))
    }

    /// When a lease has waited too long for a slot.
    var queueDeadline: Int64? {
        leases.oldestQueued.map { $0 + configuration.queueTime.wholeNanoseconds }
    }

    /// Takes a granted lease in. A name that is known already was granted before: the answer was doubled.
    mutating func take(_ lease: LeaseDocument, _ now: Int64) {
        guard leases[lease.name] == nil else { return }
        leases.enqueue(lease, now: now)
        if course != .working || sink(lease.sink)?.takes(lease.kind) != true { giveBackUntouched(lease.name, now) }
    }

    /// Starts what waits, as long as there are slots; nothing while writing is suspended.
    mutating func startQueued(_ now: Int64) {
        guard case .open(let open) = session, !open.isSuspended, course == .working else { return }
        // Not the machine itself: a closure that has a copy of it makes every change copy the table of leases.
        let shares = shares
        while freeSlots > 0, let lease = leases.startNext(now, where: { Self.isPayable($0, shares) }) {
            effects.append(.start(lease, seat: leases.seat(of: lease.name)))
        }
    }

    /// Whether a lease may begin as far as budgets go: not while its share of one is nothing yet.
    private static func isPayable(_ lease: LeaseDocument, _ shares: [String: Int64]) -> Bool {
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
        case (.shrunk(let end, let speed), .running), (.shrunk(let end, let speed), .finishing),
            (.shrunk(let end, let speed), .releasing):
            tellEnd(end, of: name, speed: speed, now)
        case (.progress(let durable, let learned), .running), (.progress(let durable, let learned), .finishing),
            (.progress(let durable, let learned), .releasing):
            ledger.add(Report(lease: name, kind: .progress, durable: durable, learned: learned), now: now)
        case (.fetched, .running):
            noteTime(of: lease, now)
            leases.move(name, to: .finishing)
        case (.fetched, .finishing), (.fetched, .releasing): break
        case (.ended(let ending), .running), (.ended(let ending), .finishing), (.ended(let ending), .releasing):
            end(name, ending, of: lease, now)
        }
    }

    /// How long a transfer took says how many may wait.
    private mutating func noteTime(of lease: HeldLease, _ now: Int64) {
        guard lease.kind == .fetch, case .running = lease.phase, let start = lease.startedAt else { return }
        meanTime = meanTime.map { $0 + (now - start - $0) / 8 } ?? now - start
    }

    /// An origin that refuses because of too much at once is asked no more for what waits: it goes back, to wait as the coordinator says.
    private mutating func heedLimit(_ failure: Report.Failure, of lease: HeldLease, _ now: Int64) {
        guard
            failure.retryAfter != nil || failure.isLimit == true
                || failure.kind.limitSignal(status: failure.status) == .certain,
            let origin = lease.origin
        else {
            return
        }
        for name in leases.queued(for: origin) { giveBackUntouched(name, now) }
    }

    private mutating func end(_ name: LeaseName, _ ending: JobEnding, of lease: HeldLease, _ now: Int64) {
        leases.move(name, to: .ended)
        switch ending {
        case .done(let durable, let learned, let finished):
            noteTime(of: lease, now)
            ledger.add(
                Report(lease: name, kind: .done, durable: durable, learned: learned, finished: finished),
                now: now
            )
        case .purged(let removed): ledger.add(Report(lease: name, kind: .done, removed: removed), now: now)
        case .resolved(let answer):
            ledger.add(Report(lease: name, kind: .resolved, resolved: answer), now: now)
        case .servedAgain: ledger.add(Report(lease: name, kind: .servedAgain), now: now)
        case .failed(let failure, let durable, let learned):
            // A refusal takes as long as an answer does; a silence says nothing of the next transfer.
            if let status = failure.status, status >= 400 { noteTime(of: lease, now) }
            ledger.add(
                Report(lease: name, kind: .failed, durable: durable, learned: learned, failure: failure),
                now: now
            )
            heedLimit(failure, of: lease, now)
        case .released(let durable, let learned):
            ledger.add(Report(lease: name, kind: .released, durable: durable, learned: learned), now: now)
        case .restart(let what, let rung):
            let failure = Report.Failure(kind: .badRange, detail: what)
            ledger.add(Report(lease: name, kind: .restart, failure: failure, rung: rung), now: now)
        case .sinkTrouble(let trouble, _, _) where lease.kind == .purge:
            // A purge that went back would be leased again at once, since a full sink is leased purges: as a failure it waits.
            let failure = Report.Failure(kind: trouble.kind, detail: trouble.detail)
            ledger.add(Report(lease: name, kind: .failed, failure: failure), now: now)
            park(lease.sink, trouble, now)
        case .sinkTrouble(let trouble, let durable, let learned):
            ledger.add(Report(lease: name, kind: .released, durable: durable, learned: learned), now: now)
            park(lease.sink, trouble, now)
        case .aborted:
            // Nobody told it to, so something ended it that will not come again: the lease goes back.
            ledger.add(Report(lease: name, kind: .released), now: now)
        }
    }
}
