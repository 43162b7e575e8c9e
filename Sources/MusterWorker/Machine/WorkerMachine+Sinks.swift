import MusterAPI
import MusterCore

extension WorkerMachine {
    /// When the next parked sink is tried.
    var probeDeadline: Int64? {
        guard case .working = course else { return nil }
        return sinks.compactMap(\.probeDeadline).min()
    }

    /// The sink of that name.
    func sink(_ name: String) -> SinkState? {
        sinks.first { $0.name == name }
    }

    /// Takes nothing more for a sink until it works again, and gives back what there is of it; but for what deletes, where the sink is full.
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

    /// Tries the parked sinks whose time has come.
    mutating func probeSinks(_ now: Int64) {
        guard case .working = course else { return }
        for index in sinks.indices {
            guard case .parked(let trouble, let probes, let probeAt) = sinks[index].health, probeAt <= now else {
                continue
            }
            sinks[index].health = .probing(trouble, probes: probes + 1)
            effects.append(.probe(sink: sinks[index].name))
        }
    }

    /// Takes in how a parked sink was found: by a probe, or late, as a session began there.
    mutating func takeProbe(_ name: String, _ result: ProbeResult, _ now: Int64) {
        guard let index = sinks.firstIndex(where: { $0.name == name }) else { return }
        let (before, probes): (SinkTrouble, Int)
        switch sinks[index].health {
        case .probing(let trouble, let tries), .parked(let trouble, let tries, _): (before, probes) = (trouble, tries)
        case .well: return
        }
        switch result {
        case .well(let freeBytes):
            sinks[index].health = .well(probes: probes, since: now)
            sinks[index].freeBytes = freeBytes
            effects.append(.log(.sinkRecovered(name)))
            tellNews()
        case .sessionEnded:
            setParked(index, before, probes: 0, now)
            loseSession(now)
        case .trouble(let trouble):
            setParked(index, trouble, probes: probes, now)
            guard trouble != before else { return }
            effects.append(.log(.sinkParked(name, trouble)))
            tellNews()
        }
    }

    private mutating func setParked(_ index: Int, _ trouble: SinkTrouble, probes: Int, _ now: Int64) {
        // Half of the backoff always, the other half at random: never at once, and not all workers at the same time.
        let bound = configuration.probing.delay(failures: probes + 1, random: 1).wholeNanoseconds
        let delay = bound / 2 + Int64(Double(bound / 2) * jitter())
        sinks[index].health = .parked(trouble, probes: probes, probeAt: now + max(1, delay))
    }

    /// Has a sync sent at once although no report asks for it.
    mutating func tellNews() {
        guard case .open(var open) = session else { return }
        open.hasNews = true
        session = .open(open)
    }
}
