import MusterAPI
import MusterCore
import MusterSystem

extension WorkerMachine {
    /// When the next sync, or the end of the patience with a superseded poll, is due.
    var syncDeadline: Int64? {
        guard case .open(let open) = session else { return nil }
        return [promptDue(open), pollDue(open), giveUpDue(open)].compactMap { $0 }.min()
    }

    /// When the sync that is answered at once is due; `nil` while one is under way: later news goes into the next one.
    private func promptDue(_ open: OpenSession) -> Int64? {
        guard open.prompt == nil else { return nil }
        var due = open.lastSent + open.trust.renewInterval.wholeNanoseconds
        if !shares.isEmpty { due = min(due, open.lastSent + configuration.budgetInterval.wholeNanoseconds) }
        if let since = ledger.waitingSince { due = min(due, since + configuration.progressDelay.wholeNanoseconds) }
        if ledger.urgentCount > 0 || open.hasNews { due = .min }
        return max(due, open.notBefore)
    }

    /// When the sync that waits for work is due. A worker without room waits for wishes alone, once it has nothing else to report.
    private func pollDue(_ open: OpenSession) -> Int64? {
        guard open.poll == nil, open.prompt == nil, course == .working else { return nil }
        let quiet = room > 0 || ahead > 0 ? .min : open.lastSent + configuration.progressDelay.wholeNanoseconds
        return max(open.notBefore, open.pollNotBefore, quiet)
    }

    /// When a superseded poll is given up.
    private func giveUpDue(_ open: OpenSession) -> Int64? {
        open.poll?.supersededAt.map { $0 + configuration.supersededGrace.wholeNanoseconds }
    }

    /// Sends the sync that is due. At most one poll and one prompt sync are under way, the poll being the older one.
    mutating func planSyncs(_ now: Int64) {
        guard case .open(var open) = session else { return }
        if let due = giveUpDue(open), due <= now {
            abandon(open.poll)
            if let poll = open.poll { takeBack(poll) }
            open.poll = nil
        }
        if let due = promptDue(open), due <= now {
            if let poll = open.poll, poll.supersededAt == nil { open.poll?.supersededAt = now }
            open.prompt = send(&open, wait: .zero, now)
            open.hasNews = false
        } else if let due = pollDue(open), due <= now {
            // Shorter than the renewal interval: an idle worker is kept alive by its polls alone.
            let wait = min(configuration.longPoll, open.trust.timeToLive / 4)
            open.poll = send(&open, wait: shares.isEmpty ? wait : min(wait, configuration.budgetPoll), now)
        }
        session = .open(open)
    }

    private mutating func send(_ open: inout OpenSession, wait: Duration, _ now: Int64) -> SyncInFlight {
        let settled = open.settled
        open.lastSequence += 1
        open.lastSent = now
        // Reports make the coordinator answer at once, so a poll carries none; waiting reports are sent when they are
        // due.
        let limit = wait == .zero ? Limits.reportsPerSync : 0
        let (reports, receipts) = limit == 0 ? ([], []) : ledger.carry(limit: limit, now: now)
        let sync = SyncInFlight(
            sequence: open.lastSequence,
            sent: now,
            wait: wait.wholeNanoseconds,
            receipts: receipts,
            receivedBytes: untoldBytes,
            traffic: takeTraffic()
        )
        untoldBytes = 0
        effects.append(
            .sync(
                open.id,
                SyncRequest(
                    sequence: sync.sequence,
                    settled: settled,
                    reports: reports,
                    held: leases.names,
                    room: room,
                    ahead: ahead > 0 ? ahead : nil,
                    spare: takesSpare(now) ? true : nil,
                    waitMilliseconds: wait.milliseconds,
                    sinks: sinks.map(\.status),
                    receivedBytes: sync.receivedBytes,
                    traffic: sync.traffic.isEmpty ? nil : sync.traffic,
                    check: checkReport
                )
            )
        )
        return sync
    }

    /// Takes in an answer. An answer that is not awaited (late, doubled, of an older session) changes nothing: the
    /// coordinator was told that its sync is settled.
    mutating func takeAnswer(_ id: SessionID, _ sequence: Int64, _ answer: SyncResponse, _ now: Int64) {
        guard case .open(var open) = session, open.id == id, let sync = Self.take(sequence, from: &open) else { return }
        if open.failures > 0 { effects.append(.log(.reachable)) }
        open.failures = 0
        open.notBefore = .min
        forgetOutage()
        // A lease that is being stopped is named in every answer, and is no news.
        let newlyLost = answer.lost.filter { leases[$0]?.isStopping == false }
        let isEmpty = answer.leases.isEmpty && newlyLost.isEmpty && !answer.drain && !isNews(answer.check)
        if sync.wait > 0, isEmpty, sync.supersededAt == nil,
            now - sync.sent < min(sync.wait, configuration.emptyPollBrake.wholeNanoseconds)
        {
            open.pollNotBefore = now + configuration.emptyPollBrake.wholeNanoseconds
        }
        // Only of a prompt sync: a poll waits for work.
        if sync.wait == 0 { roundTrip = roundTrip.map { $0 + (now - sync.sent - $0) / 8 } ?? now - sync.sent }
        renew(&open, sent: sync.sent, answer, now)
        session = .open(open)
        for refusal in answer.refused where leases[refusal.lease]?.isStopping == false {
            effects.append(.log(.reportRefused(refusal.lease, refusal.reason)))
            takeAway(refusal.lease)
        }
        let deferred = Set(answer.deferred ?? [])
        ledger.putOff(sync.receipts.filter { deferred.contains($0.lease) }, now: now)
        let stored = sync.receipts.filter { !deferred.contains($0.lease) }
        for name in ledger.acknowledge(stored, now: now) { leases.remove(name) }
        for name in newlyLost where leases[name] != nil {
            effects.append(.log(.leaseLost(name)))
            takeAway(name)
        }
        // Before new leases: a lease under a budget begins when its share is known.
        takeShares(answer.budgets ?? [], isSuperseded: sync.supersededAt != nil)
        for wish in answer.shrink { shrink(wish, now) }
        // A coordinator may have been started anew with other options.
        if answer.addresses != addresses {
            addresses = answer.addresses
            effects.append(.guardAddresses(addresses))
        }
        for lease in answer.leases { take(lease, now) }
        // A superseded sync told of an earlier page.
        if sync.supersededAt == nil { takeOrder(answer.check, now) }
        if answer.drain { beginDrain(now) }
    }

    /// A sync was not answered: its news waits for another sync, after a pause.
    mutating func missAnswer(_ id: SessionID, _ sequence: Int64, _ failure: CallFailure, _ now: Int64) {
        guard case .open(var open) = session, open.id == id, let sync = Self.take(sequence, from: &open) else { return }
        takeBack(sync)
        ledger.restore(sync.receipts, now: now)
        guard failure != .sessionGone else {
            session = .open(open)
            return loseSession(now)
        }
        tellOutage(failure, now)
        open.failures += 1
        let delay = configuration.reconnect.delay(failures: open.failures, random: jitter())
        open.notBefore = now + max(1, delay.wholeNanoseconds)
        // The sync may have carried a sink's state, or the news that a job has stopped.
        open.hasNews = open.hasNews || sync.wait == 0
        session = .open(open)
    }

    private static func take(_ sequence: Int64, from open: inout OpenSession) -> SyncInFlight? {
        if let poll = open.poll, poll.sequence == sequence {
            open.poll = nil
            return poll
        }
        if let prompt = open.prompt, prompt.sequence == sequence {
            open.prompt = nil
            return prompt
        }
        return nil
    }
}
