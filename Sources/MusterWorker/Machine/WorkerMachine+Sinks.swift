import MusterAPI
import MusterCore
import MusterSystem

extension WorkerMachine {
    /// When the next sink is tried or checked.
    var probeDeadline: Int64? {
        guard triesSinks else { return nil }
        return sinks.compactMap(\.probeDeadline).min()
    }

    /// Whether sinks are tried: in a drain, only if leases can't be given back otherwise.
    private var triesSinks: Bool { course == .working || leases.unsettled > 0 }

    /// The sink of that name.
    func sink(_ name: String) -> SinkState? {
        sinks.first { $0.name == name }
    }

    /// Parks a sink: takes no leases of it until it works again, and gives back those there are. In a full sink, purges go on.
    mutating func park(_ name: String, _ trouble: SinkTrouble, _ now: Int64) {
        guard let index = sinks.firstIndex(where: { $0.name == name }),
            case .well(let probes, let since) = sinks[index].health
        else { return }
        let isRelapse = since != .min && now - since < configuration.sinkRelapse.wholeNanoseconds
        setParked(index, trouble, probes: isRelapse ? probes : 0, now)
        effects.append(.log(.sinkParked(name, trouble)))
        tellNews()
        for lease in leases.names {
            guard let held = leases[lease], held.sink == name, !sinks[index].takes(held.kind) else { continue }
            askToRelease(lease, now)
        }
    }

    /// Tries the parked sinks that are due, and checks the healthy ones that have no leases.
    mutating func probeSinks(_ now: Int64) {
        guard triesSinks else { return }
        for index in sinks.indices {
            switch sinks[index].health {
            case .parked(let trouble, let probes, let probeAt) where probeAt <= now:
                sinks[index].health = .probing(trouble, probes: probes + 1)
                noteProbe(of: sinks[index].name)
                effects.append(.probe(sink: sinks[index].name))
            case .well: watch(index, now)
            case .parked, .probing: break
            }
        }
    }

    private mutating func watch(_ index: Int, _ now: Int64) {
        switch sinks[index].watch {
        case .none: watchLater(index, now)
        case .due(let moment) where moment <= now:
            // Jobs that work there find trouble by themselves.
            if leases.names.contains(where: { leases[$0]?.sink == sinks[index].name }) {
                watchLater(index, now)
            } else {
                sinks[index].watch = .looking
                effects.append(.probe(sink: sinks[index].name))
            }
        case .due, .looking: break
        }
    }

    private mutating func watchLater(_ index: Int, _ now: Int64) {
        sinks[index].watch = .due(at: now + configuration.sinkWatch.wholeNanoseconds)
    }

    /// Takes in the result of a check of a sink that was healthy before.
    private mutating func takeLook(_ index: Int, _ result: ProbeResult, _ now: Int64) {
        guard sinks[index].watch == .looking else { return }
        watchLater(index, now)
        switch result {
        case .well(let freeBytes): sinks[index].freeBytes = freeBytes
        case .sessionEnded: loseSession(now)
        case .trouble(let trouble): park(sinks[index].name, trouble, now)
        }
    }

    /// Takes in the state of a sink: from a probe, or late, from the begin of a session there.
    mutating func takeProbe(_ name: String, _ result: ProbeResult, _ now: Int64) {
        guard let index = sinks.firstIndex(where: { $0.name == name }) else { return }
        let (before, probes): (SinkTrouble, Int)
        switch sinks[index].health {
        case .probing(let trouble, let tries), .parked(let trouble, let tries, _): (before, probes) = (trouble, tries)
        case .well: return takeLook(index, result, now)
        }
        switch result {
        case .well where !settle(name, now): setParked(index, before, probes: probes, now)
        case .well(let freeBytes):
            sinks[index].health = .well(probes: probes, since: now)
            sinks[index].freeBytes = freeBytes
            watchLater(index, now)
            effects.append(.log(.sinkRecovered(name)))
            tellNews()
        case .sessionEnded:
            setParked(index, before, probes: 0, now)
            loseSession(now)
        case .trouble(let trouble):
            setParked(index, trouble, probes: probes, now)
            if trouble.kind == .storageFull { _ = settle(name, now) }
            giveUpUnsettled(index, now)
            guard trouble != before else { return }
            effects.append(.log(.sinkParked(name, trouble)))
            tellNews()
        }
    }

    /// A call to a sink has not returned since `since`: no more leases are taken for the sink, and its jobs are asked to give theirs back. A job that waits
    /// for the call can't be ended, and may still write when the call returns. After a while the session is given up; its successors revoke it in the sink
    /// (adr/0017) before they write anything.
    mutating func takeHang(_ name: String, since: Int64, _ now: Int64) {
        park(name, SinkStation.hang, now)
        guard let index = sinks.firstIndex(where: { $0.name == name }), case .open(let open) = session,
            open.opened <= since, leases.names.contains(where: { leases[$0]?.sink == name })
        else { return }
        giveUpSession(index, since: since, now)
    }

    /// Gives the session up if a sink has not done what it should since `since`. The patience grows each time.
    mutating func giveUpSession(_ index: Int, since: Int64, _ now: Int64) {
        let patience = configuration.hangPatience.bound(failures: sinks[index].hangs + 1)
        guard now - since >= patience.wholeNanoseconds else { return }
        sinks[index].hangs += 1
        loseSession(now)
    }

    private mutating func setParked(_ index: Int, _ trouble: SinkTrouble, probes: Int, _ now: Int64) {
        let delay = configuration.probing.delay(failures: probes + 1, random: jitter())
        sinks[index].health = .parked(trouble, probes: probes, probeAt: now + max(1, delay.wholeNanoseconds))
    }

    /// Has a sync sent at once, although no report calls for it.
    mutating func tellNews() {
        guard case .open(var open) = session else { return }
        open.hasNews = true
        session = .open(open)
    }
}
