import MusterAPI
import MusterCore

extension WorkerMachine {
    /// When the drain goes on to its next stage.
    var drainDeadline: Int64? {
        switch course {
        case .working, .over: nil
        case .draining(let since): since + configuration.drainPatience.wholeNanoseconds
        case .hurrying(let since): since + configuration.drainAbort.wholeNanoseconds
        case .leaving(let since): since + configuration.drainEnd.wholeNanoseconds
        }
    }

    /// Begins the drain: no more leases are taken. Fetches are asked to make their offsets durable and to end; finalizations, purges and resolver requests
    /// may go on for a moment.
    mutating func beginDrain(_ now: Int64) {
        guard case .working = course else { return }
        course = .draining(since: now)
        effects.append(.log(.draining))
        stopLooking()
        for name in leases.names {
            guard let lease = leases[name] else { continue }
            switch (lease.kind, lease.phase) {
            case (.finalize, .running), (.purge, .running), (.resolve, .running), (_, .finishing): break
            case (_, .queued), (.fetch, .running), (.trial, .running), (_, .releasing), (_, .aborting), (_, .ended):
                askToRelease(name, now)
            }
        }
    }

    /// Goes through the stages of a drain, and closes the session as soon as nothing is left to report.
    mutating func advanceDrain(_ now: Int64) {
        if let since = course.drainSince {
            if case .draining = course, now >= since + configuration.drainPatience.wholeNanoseconds {
                course = .hurrying(since: since)
                for name in leases.names { askToRelease(name, now) }
            }
            if case .hurrying = course, now >= since + configuration.drainAbort.wholeNanoseconds {
                course = .leaving(since: since)
                for name in leases.names where leases[name]?.isAtWork == true {
                    leases.move(name, to: .aborting)
                    ledger.drop(name)
                    effects.append(.abort(name))
                }
            }
            if now >= since + configuration.drainEnd.wholeNanoseconds {
                effects.append(.log(.drainCutShort(leases: leases.counts.unfinished)))
                return finish()
            }
        }
        closeWhenIdle()
    }

    private mutating func closeWhenIdle() {
        guard course.drainSince != nil, leases.counts.unfinished == 0 else { return }
        switch session {
        case .absent, .opening: finish()
        case .open(let open):
            // The last stage does not wait for acknowledgements: closing gives every lease back.
            if case .leaving = course {} else if !ledger.isEmpty { return }
            session = .closing
            abandon(open.poll)
            abandon(open.prompt)
            effects.append(.closeSession(open.id))
        case .closing, .over: break
        }
    }
}

extension HeldLease {
    fileprivate var isAtWork: Bool {
        switch phase {
        case .running, .finishing, .releasing: true
        case .queued, .aborting, .ended: false
        }
    }
}
