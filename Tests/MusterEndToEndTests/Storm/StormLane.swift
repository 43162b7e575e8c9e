import MusterTestSupport

/// Plays faults of one kind, one after the other: each is fired, lasts for a while, ends, and then a new file has to come.
struct StormLane: Sendable {
    let kind: StormFault.Kind
    let scene: StormScene
    var random: SeededGenerator
    /// Faults that come before all others.
    let first: [StormFault]

    init(_ kind: StormFault.Kind, _ scene: StormScene, _ random: SeededGenerator, first: [StormFault] = []) {
        self.kind = kind
        self.scene = scene
        self.random = random
        self.first = first
    }

    /// Plays faults until `end`, each one once before any of them comes again. In a lane of processes the primary is lost after two thirds of the
    /// time.
    mutating func run(until end: ContinuousClock.Instant) async throws {
        let start = ContinuousClock.now
        var deck = first.shuffled(using: &random)
        var rest = StormFault.allCases.filter { $0.row.kind == kind && !first.contains($0) }
        var once = kind == .processes ? StormFault.allCases.filter { $0.row.kind == .once } : []
        while ContinuousClock.now < end {
            if deck.isEmpty {
                deck = rest.shuffled(using: &random)
                rest = StormFault.allCases.filter { $0.row.kind == kind }
            }
            if kind == .processes { try await startDrained() }
            if let fault = once.last, ContinuousClock.now - start > (end - start) * 2 / 3 {
                once.removeLast()
                try await play(fault)
            } else {
                try await play(deck.removeLast())
            }
            try await Task.sleep(for: random.milliseconds(50...400))
        }
        // A fault may have lasted until the end.
        for fault in once { try await play(fault) }
        if kind == .processes { try await startDrained() }
    }

    private mutating func play(_ fault: StormFault) async throws {
        let end: StormPlay.End
        do {
            end = try await StormPlay(scene: scene).fire(fault, using: &random)
        } catch let passed as StormFault.NotPlayed {
            scene.report.passedOver(fault, passed.reason)
            return
        }
        scene.report.fired(fault)
        try await Task.sleep(for: random.milliseconds(fault.row.hold))
        try await end()
        let duration = try await scene.canary.sing(after: fault.row.title, limit: fault.bound) { [lane = self] in
            // Clients may drain all workers meanwhile.
            if lane.kind == .processes { try await lane.startDrained() }
        }
        scene.report.recovered(fault, after: duration)
    }

    /// Starts workers in the place of those that a client has drained. Whatever else ends a worker is a mistake.
    private func startDrained() async throws {
        for name in StormClient.workers {
            guard let worker = await scene.fleet.worker(name), let exit = worker.exit else { continue }
            if exit != .exited(0) {
                scene.ledger.isSurprised(by: "the worker \(name) has \(exit): \(worker.standardError.suffix(1_000))")
            }
            try await scene.fleet.replaceWorker(name)
        }
        for coordinator in await scene.fleet.coordinators {
            guard let exit = coordinator.process.exit else { continue }
            let text = coordinator.process.standardError.suffix(1_000)
            scene.ledger.isSurprised(by: "a coordinator has \(exit): \(text)")
            try await scene.fleet.startCoordinator(port: coordinator.port)
        }
    }
}
