import MusterAPI
import MusterCore

extension WorkerMachine {
    /// How many more transfers the worker can begin now: its free slots, less those that queued leases could use.
    var room: Int {
        guard takesWork else { return 0 }
        return max(0, min(freeSlots - leases.startable, bound))
    }

    /// Whether the worker begins one more transfer beyond its slots: all are taken, three of four by transfers that last long, which may be those of few
    /// groups (adr/0051). A transfer that waits for an answer, or has brought hardly anything for a while,
    /// takes little but a connection, so that one more may run for each.
    func takesSpare(_ now: Int64) -> Bool {
        let counts = leases.counts
        guard takesWork, bound > 0, counts.inSlots >= configuration.slots, openFiles > 0 else { return false }
        let moment = now - configuration.sparePatience.wholeNanoseconds
        guard 4 * leases.slotsTaken(since: moment) >= 3 * configuration.slots else { return false }
        let more = counts.beyondSlots - configuration.transfersBeyondSlots
        return more < 0
            || more
                < min(
                    leases.silentTransfers(since: moment, or: moment - configuration.sparePatience.wholeNanoseconds),
                    configuration.silentTransfers)
    }

    /// How many more transfers may begin within the slots. A transfer beyond the slots never takes one: it would take it from a more urgent group.
    private var freeSlots: Int { min(configuration.slots - leases.counts.inSlots, openFiles) }

    /// How many more leases may hold a file open. One that is being made durable or put in place takes no slot, but holds its file.
    private var openFiles: Int {
        MachineConfiguration.jobsPerSlot * configuration.slots - leases.counts.occupying - leases.counts.finishing
    }

    /// How many leases the worker takes besides, to queue in its lanes: enough that no lane waits for a round trip between two transfers.
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

    /// How many leases may be queued: for each lane as many as bridge two round trips, so that no lane is idle until the next answer. None if two round trips
    /// are less than a twentieth of a transfer. None before the first transfer has ended, since the duration of transfers is not known yet.
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

    /// Queues a granted lease. If its name is known, the same answer came twice.
    mutating func take(_ lease: LeaseDocument, _ now: Int64) {
        guard leases[lease.name] == nil else { return }
        leases.enqueue(lease, now: now)
        if course != .working || sink(lease.sink)?.takes(lease.kind) != true { giveBackUntouched(lease.name, now) }
    }

    /// Starts queued leases, as long as there are slots; none while writing is suspended.
    mutating func startQueued(_ now: Int64) {
        guard case .open(let open) = session, !open.isSuspended, course == .working else { return }
        // Not the machine itself: a closure that has a copy of it makes every change copy the table of leases.
        let shares = shares
        while freeSlots > 0 || leases.counts.queued > 0 && takesSpare(now),
            let lease = leases.startNext(now, isBeyondSlots: freeSlots <= 0, where: { Self.isPayable($0, shares) })
        {
            effects.append(.start(lease, seat: leases.seat(of: lease.name)))
        }
    }

    /// Whether budgets allow a lease to begin: not while its share of one is still zero.
    private static func isPayable(_ lease: LeaseDocument, _ shares: [String: Int64]) -> Bool {
        shares.isEmpty || lease.budgetNames.allSatisfy { shares[$0] != 0 }
    }

    /// Gives back leases that could not start in time, so that another worker can have them.
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

    /// Gives back a lease that was not worked on: its durable offset stays as it was.
    mutating func giveBackUntouched(_ name: LeaseName, _ now: Int64) {
        leases.move(name, to: .ended)
        ledger.add(Report(lease: name, kind: .released), now: now)
    }

    /// Drops a lease that was taken away: its job stops, deletes nothing and reports nothing.
    mutating func takeAway(_ name: LeaseName) {
        guard let lease = leases[name] else { return }
        ledger.drop(name)
        switch lease.phase {
        case .queued, .ended: leases.remove(name)
        case .finishing where lease.unsettled != nil: leases.move(name, to: .aborting)
        case .running, .finishing, .releasing:
            leases.move(name, to: .aborting)
            effects.append(.abort(name))
        case .aborting: break
        }
    }

    /// Asks a job to give its lease back, unless it was asked already.
    mutating func askToRelease(_ name: LeaseName, _ now: Int64) {
        guard leases[name]?.unsettled == nil else { return }
        switch leases[name]?.phase {
        case .queued?: giveBackUntouched(name, now)
        case .running?, .finishing?:
            leases.move(name, to: .releasing)
            effects.append(.release(name))
        case .releasing?, .aborting?, .ended?, nil: break
        }
    }

    /// Takes in the news of a job.
    mutating func takeNews(_ name: LeaseName, _ news: JobNews, _ now: Int64) {
        guard let lease = leases[name] else { return }
        switch (news, lease.phase) {
        case (.ended(.unsettled(let trouble)), .aborting): keepUnsettled(name, of: lease, trouble, now)
        case (.ended, .aborting):
            leases.remove(name)
            // The leftovers of a cancelled task are deleted once it is known that no job writes them any more (I13).
            tellNews()
        case (.progress, .aborting), (.fetched, .aborting), (.shrunk, .aborting), (_, .ended), (_, .queued): break
        case (.shrunk(let end, let speed), .running), (.shrunk(let end, let speed), .finishing),
            (.shrunk(let end, let speed), .releasing):
            tellEnd(end, of: name, speed: speed, now)
        case (.progress(let durable, let learned), .running), (.progress(let durable, let learned), .finishing),
            (.progress(let durable, let learned), .releasing):
            leases.noteAnswer(to: name, offset: durable?.offset, now: now)
            ledger.add(Report(lease: name, kind: .progress, durable: durable, learned: learned), now: now)
        case (.fetched, .running):
            noteTime(of: lease, now)
            leases.move(name, to: .finishing)
        case (.fetched, .finishing), (.fetched, .releasing): break
        case (.ended(let ending), .running), (.ended(let ending), .finishing), (.ended(let ending), .releasing):
            end(name, ending, of: lease, now)
        }
    }

    /// Averages the duration of transfers, which decides how many leases may be queued.
    private mutating func noteTime(of lease: HeldLease, _ now: Int64) {
        guard lease.kind == .fetch, case .running = lease.phase, let start = lease.startedAt else { return }
        meanTime = meanTime.map { $0 + (now - start - $0) / 8 } ?? now - start
    }

    /// Gives back the queued leases of an origin that refuses because of too much at once: they wait as long as the coordinator decides.
    private mutating func heedLimit(_ failure: Report.Failure, of lease: HeldLease, _ now: Int64) {
        guard
            failure.retryAfter != nil && failure.elsewhere != true || failure.isLimit == true
                || failure.kind.limitSignal(status: failure.status) == .certain,
            let origin = lease.origin
        else {
            return
        }
        for name in leases.queued(for: origin) { giveBackUntouched(name, now) }
    }

    private mutating func end(_ name: LeaseName, _ ending: JobEnding, of lease: HeldLease, _ now: Int64) {
        if case .unsettled(let trouble) = ending { return keepUnsettled(name, of: lease, trouble, now) }
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
        case .sinkTrouble(let trouble, let durable, let learned):
            giveBack(name, of: lease, after: trouble, now, durable: durable, learned: learned)
            park(lease.sink, trouble, now)
        case .unsettled: break
        case .aborted:
            // The machine did not abort the job, so a passing cause ended it: the lease is released.
            ledger.add(Report(lease: name, kind: .released), now: now)
        }
    }
}
