import Glibc
import MusterTestSupport

/// What happens to the processes of the storm, one thing after the other (F1, F2, F3).
struct StormFaults: Sendable {
    /// How often each fault happened.
    struct Tally: Sendable {
        var kills = 0
        var stops = 0
        var coordinatorKills = 0
        var drained = 0
    }

    let fleet: Fleet
    var random: SeededGenerator
    var tally = Tally()

    /// Causes faults until `end`, and leaves every process running.
    mutating func run(until end: ContinuousClock.Instant) async throws -> Tally {
        let start = ContinuousClock.now
        while ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(Int.random(in: 100...800, using: &random)))
            try await startDrained()
            let name = StormClient.workers[Int.random(in: 0..<StormClient.workers.count, using: &random)]
            if tally.coordinatorKills == 0, ContinuousClock.now - start > (end - start) / 2 {
                try await replaceCoordinator()
            } else if kills() {
                try await fleet.replaceWorker(name)
                tally.kills += 1
            } else if let worker = await fleet.worker(name) {
                try worker.signal(SIGSTOP)
                // Its session lives for 3 s.
                try await Task.sleep(for: .milliseconds(Int.random(in: 200...4_000, using: &random)))
                try worker.signal(SIGCONT)
                tally.stops += 1
            }
        }
        try await startDrained()
        return tally
    }

    /// Whether a kill comes next rather than a stop: by chance, but neither comes a second time before the other has come once.
    private mutating func kills() -> Bool {
        switch (tally.kills, tally.stops) {
        case (0, 1...): true
        case (1..., 0): false
        default: Bool.random(using: &random)
        }
    }

    private mutating func replaceCoordinator() async throws {
        guard let victim = await fleet.coordinators.first else { throw Unexpected("no coordinator") }
        try await fleet.kill(victim.process)
        tally.coordinatorKills += 1
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...2_000, using: &random)))
        try await fleet.startCoordinator(port: victim.port)
    }

    /// Starts workers in the place of those that a client has drained.
    private mutating func startDrained() async throws {
        for name in StormClient.workers where await fleet.worker(name)?.exit != nil {
            try await fleet.replaceWorker(name)
            tally.drained += 1
        }
    }
}
