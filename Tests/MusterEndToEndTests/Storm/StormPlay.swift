import Glibc
import MusterTestSupport

/// Fires faults: the other half of the table in `StormFault`.
struct StormPlay: Sendable {
    /// Ends a fault.
    typealias End = @Sendable () async throws -> Void

    let scene: StormScene

    var fleet: Fleet { scene.fleet }
    var database: StormDatabase { scene.database }

    /// The paths on which workers and coordinators talk.
    private static let control: [StormLinks.Kind] = [.worker, .coordinator]
    private static let all = StormLinks.Kind.allCases

    /// Fires a fault, and returns what ends it.
    ///
    /// - Throws: ``StormFault/NotPlayed``, if that is not possible now.
    func fire(_ fault: StormFault, using random: inout SeededGenerator) async throws -> End {
        switch fault {
        case .workerKilled: try await killWorker(&random)
        case .workerStopped: try await stopWorker(&random)
        case .coordinatorKilled: try await killCoordinator(&random)
        case .coordinatorStopped: try await stopCoordinator(&random)
        case .powerCut: try await cutPower()
        case .unsyncedLost: try await loseUnsynced()
        case .namesake: try await startNamesake(&random)
        case .fewDescriptors: try await takeDescriptors(&random)
        case .descriptorsUsedUp: try await flood(1_100, isThroughBalancer: false, .nothing, &random)
        case .idleConnections: try await flood(400, isThroughBalancer: true, .beginningOfHead, &random)
        case .otherBuild: try await changeBuild()

        case .databaseCrashed: try await crashDatabase()
        case .primaryLost: try await losePrimary()
        case .connectionsTerminated: try await signalBackends("pg_terminate_backend", "true", times: 1)
        case .statementsCancelled: try await signalBackends("pg_cancel_backend", "state = 'active'", times: 12)
        case .listenersLost: try await signalBackends("pg_terminate_backend", "query LIKE 'LISTEN%'", times: 1)
        case .deadlocks: try await deadlock()
        case .readOnly: try await refuseWrites()
        case .oldSnapshot: try await holdSnapshot(&random)
        case .notifyFlood: try await notify()

        case .commitsCut:
            try await disturb([.database], &random) { .cut(afterBytes: $0.number(0...3_000), $0.direction()) }
        case .partition: try await disturb([.database, .worker, .coordinator], &random) { .partition($0.direction()) }
        case .messagesLate: try await disturb(Self.control, &random) { .latency($0.milliseconds(500...2_500)) }
        case .answersLost: try await disturb(Self.control, &random) { .cut(afterBytes: $0.number(0...200), .toClient) }
        case .latency: try await disturb(Self.all, &random) { .latency($0.milliseconds(50...400)) }
        case .bandwidth:
            try await disturb(Self.all, &random) { .bandwidth(bytesPerSecond: $0.number(20_000...200_000)) }
        case .hang: try await disturb(Self.all, &random) { _ in .hang }
        case .reset: try await disturb(Self.all, &random) { _ in .reset }
        case .slices: try await disturb(Self.all, &random) { .slices(bytes: $0.number(200...2_000)) }
        case .cut: try await disturb(Self.all, &random) { .cut(afterBytes: $0.number(1_000...200_000), .toClient) }
        case .originOut: try await closeOrigin(&random)
        case .receiverFails: failReceiver(&random)

        case .diskFull: try await fillDisk(&random)
        case .writesFail: try await disturb(.writesFail)
        case .writesShort: try await disturb(.writesShort)
        case .syncsFail: try await disturb(.syncsFail)
        case .partDeleted: try await spoilPart(isDeleted: true, &random)
        case .partTruncated: try await spoilPart(isDeleted: false, &random)

        case .secondInstallation: try await letStrangersWork()
        case .olderDatabase: try await sendStrangersBack()
        case .killedAgain: try await killGet(&random)
        case .misbehaviour, .verbs, .clocksJump: throw StormFault.NotPlayed(reason: "it is not fired")
        }
    }
}

// MARK: Processes

extension StormPlay {
    private func someWorker(_ random: inout SeededGenerator) async throws -> (name: String, process: TestProcess) {
        let name = StormClient.workers[Int.random(in: 0..<StormClient.workers.count, using: &random)]
        guard let process = await fleet.worker(name) else { throw Unexpected("no worker \(name)") }
        return (name, process)
    }

    private func someCoordinator(_ random: inout SeededGenerator) async throws -> Fleet.Coordinator {
        guard let coordinator = await fleet.coordinators.randomElement(using: &random) else {
            throw Unexpected("no coordinator")
        }
        return coordinator
    }

    private func killWorker(_ random: inout SeededGenerator) async throws -> End {
        let (name, process) = try await someWorker(&random)
        try await fleet.kill(process)
        return { try await fleet.replaceWorker(name) }
    }

    private func stopWorker(_ random: inout SeededGenerator) async throws -> End {
        let (_, process) = try await someWorker(&random)
        try process.signal(SIGSTOP)
        return { try process.signal(SIGCONT) }
    }

    private func killCoordinator(_ random: inout SeededGenerator) async throws -> End {
        let coordinator = try await someCoordinator(&random)
        try await fleet.kill(coordinator.process)
        return { _ = try await fleet.startCoordinator(port: coordinator.port) }
    }

    /// Stops a coordinator, in the middle of a transaction of the coordinators if one of twenty moments is such.
    private func stopCoordinator(_ random: inout SeededGenerator) async throws -> End {
        let process = try await someCoordinator(&random).process
        for _ in 0..<20 {
            try process.signal(SIGSTOP)
            let open = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
            if try await !database.execute(open).hasPrefix("0") { break }
            try process.signal(SIGCONT)
        }
        try process.signal(SIGSTOP)
        return { try process.signal(SIGCONT) }
    }

    private func cutPower() async throws -> End {
        var workers: [TestProcess] = []
        for name in StormClient.workers {
            if let worker = await fleet.worker(name) { workers.append(worker) }
        }
        let cluster = try await database.cluster()
        try await fleet.cutPower(to: workers, database: cluster)
        return {
            for name in StormClient.workers { try await fleet.replaceWorker(name) }
        }
    }

    private func startNamesake(_ random: inout SeededGenerator) async throws -> End {
        let process = try await fleet.startNamesake(of: someWorker(&random).name)
        return { try await fleet.kill(process) }
    }

    /// Replaces a worker by one that may have few descriptors.
    private func takeDescriptors(_ random: inout SeededGenerator) async throws -> End {
        let name = try await someWorker(&random).name
        let limit = ["prlimit", "--nofile=256:256"]
        try await fleet.replaceWorker(name) { $0.prefix = limit + $0.prefix }
        return { try await fleet.replaceWorker(name) { $0.prefix.removeFirst(limit.count) } }
    }

    private func flood(
        _ count: Int, isThroughBalancer: Bool, _ talk: ConnectionFlood.Talk, _ random: inout SeededGenerator
    ) async throws -> End {
        let port = if isThroughBalancer { scene.balancerPort } else { try await someCoordinator(&random).port }
        ConnectionFlood.raiseLimit()
        let flood = ConnectionFlood()
        try flood.open(count, port: port, saying: talk)
        return { flood.close() }
    }

    /// Stops the coordinators, makes the database one of another build, and starts them with a migration.
    private func changeBuild() async throws -> End {
        let former = await fleet.coordinators
        for coordinator in former { try coordinator.process.signal(SIGTERM) }
        for coordinator in former { try await coordinator.process.waitForExit() }
        try await database.execute(EndToEnd.Upgrade.otherBuild)
        return {
            for coordinator in former {
                try await fleet.startCoordinator(port: coordinator.port, options: ["--migrate"])
            }
        }
    }
}
