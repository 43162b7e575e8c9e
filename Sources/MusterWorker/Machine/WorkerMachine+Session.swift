import MusterAPI
import MusterCore
import MusterSystem

extension WorkerMachine {
    /// When a session may be asked for.
    var openDeadline: Int64? {
        guard case .absent(let retryAt, _) = session, case .working = course else { return nil }
        return retryAt
    }

    /// When the trust ends, unless it has.
    var trustDeadline: Int64? {
        guard case .open(let open) = session, !open.isSuspended else { return nil }
        return open.trust.end
    }

    /// Asks for a session when there is none and it is time.
    mutating func openSession(_ now: Int64) {
        guard case .absent(let retryAt, let failures) = session, case .working = course, now >= retryAt else { return }
        session = .opening(requested: now, failures: failures)
        effects.append(
            .openSession(
                SessionRequest(
                    name: configuration.name,
                    sinks: sinks.map(\.name),
                    slots: configuration.slots,
                    version: configuration.version,
                    labels: configuration.labels,
                    bytesPerSecond: configuration.bytesPerSecond,
                    previous: previous
                )
            )
        )
    }

    /// A session was opened; its trust counts from before it was asked for.
    ///
    /// - Parameter found: the state of the sinks. A sink in which the session has not begun must not be leased to it.
    mutating func takeSession(_ document: SessionDocument, _ found: [SinkStatus], _ now: Int64) {
        guard case .opening(let requested, _) = session else { return }
        for status in found {
            guard let kind = status.parked else { continue }
            park(status.name, SinkTrouble(kind: kind, detail: status.detail ?? ""), now)
        }
        let trust = SessionTrust(requested: requested, timeToLive: .milliseconds(document.ttlMilliseconds))
        previous = document.id
        session = .open(OpenSession(id: document.id, opened: now, trust: trust, lastSent: requested))
        effects.append(.trust(until: trust.end))
        effects.append(.log(.sessionOpened(document.id)))
        forgetOutage()
    }

    /// No session was opened: asks again later, with a growing backoff.
    mutating func missSession(_ failure: CallFailure, _ now: Int64) {
        guard case .opening(_, let failures) = session else { return }
        tellOutage(failure, now)
        let delay = configuration.reconnect.delay(failures: failures + 1, random: jitter())
        session = .absent(retryAt: now + max(1, delay.wholeNanoseconds), failures: failures + 1)
    }

    /// The session is over (404): the worker drops every lease, and deletes nothing.
    mutating func loseSession(_ now: Int64) {
        guard case .open(let open) = session else { return }
        session = .absent(retryAt: now, failures: 0)
        untoldBytes += (open.poll?.receivedBytes ?? 0) + (open.prompt?.receivedBytes ?? 0)
        effects.append(.trust(until: .min))
        effects.append(.log(.sessionLost(open.id)))
        loseShares()
        stopLooking()
        abandon(open.poll)
        abandon(open.prompt)
        ledger.removeAll()
        for name in leases.names {
            takeAway(name)
            leases.endSession(of: name)
        }
    }

    /// Suspends writing when the trust has ended: another session may hold the leases by now.
    mutating func checkTrust(_ now: Int64) {
        guard case .open(var open) = session, !open.isSuspended, !open.trust.holds(at: now) else { return }
        open.isSuspended = true
        session = .open(open)
        effects.append(.suspendWriting)
        effects.append(.log(.trustEnded))
    }

    /// Extends the trust after an answer.
    mutating func renew(_ open: inout OpenSession, sent: Int64, _ answer: SyncResponse, _ now: Int64) {
        let before = open.trust.end
        open.trust.renew(requested: sent, timeToLive: .milliseconds(answer.ttlMilliseconds))
        if open.trust.end != before { effects.append(.trust(until: open.trust.end)) }
        if open.isSuspended, open.trust.holds(at: now) {
            open.isSuspended = false
            effects.append(.resumeWriting)
            effects.append(.log(.trustRenewed))
        }
    }

    /// Logs once per outage that no coordinator can be reached. Logs each reason of a refusal when it is new, and from time to time
    /// while it lasts, whatever else was logged: an operator can do something about it.
    mutating func tellOutage(_ failure: CallFailure, _ now: Int64) {
        switch failure {
        case .unreachable, .sessionGone:
            guard !hasToldOutage else { return }
            hasToldOutage = true
        case .refused(let reason):
            let span = configuration.refusalReminder.wholeNanoseconds
            toldRefusals = toldRefusals.filter { now - $0.value < span }
            guard toldRefusals[reason] == nil else { return }
            toldRefusals[reason] = now
        }
        effects.append(.log(.unreachable(failure)))
    }

    /// A coordinator serves this worker: what is refused from now on is news.
    mutating func forgetOutage() {
        hasToldOutage = false
        toldRefusals = [:]
    }

    /// Stops waiting for an answer.
    mutating func abandon(_ sync: SyncInFlight?) {
        if let sync { effects.append(.abandonSync(sequence: sync.sequence)) }
    }
}
