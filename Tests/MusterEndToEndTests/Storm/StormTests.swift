import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Everything at once (F1–F25, but F11): two coordinators behind HAProxy, a primary with a synchronous standby, four workers and another installation
    /// on one sink, nginx and origins that misbehave, twenty groups, several clients that send every verb at random, and faults of processes, network
    /// and storage. `deploy/chaos.sh` runs it for longer.
    @Suite struct Storm {
        /// How long it lasts, in seconds: `MUSTER_STORM_SECONDS`, or a minute.
        private static var seconds: Int { setting("MUSTER_STORM_SECONDS").flatMap { Int($0) } ?? 60 }

        private static func setting(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

        @Test func everyGroupEndsOnceAndEveryFileIsRightInAStormOfRequestsAndDeaths() async throws {
            var random = SeededGenerator.forTest()
            let report = StormReport(seed: random.seed, seconds: Self.seconds)
            let origins = try await StormOrigins.start(using: &random)
            let receiver = try await StormReceiver.start()
            let database = try await StormDatabase.start()
            let seeds = (0..<8).map { _ in SeededGenerator(seed: random.next()) }
            defer { Self.write(report) }
            try await Fleet.run { others in
                let strangers = StormStrangers(fleet: others, origin: origins.steady)
                try await Fleet.run(
                    on: database.primary, coordinators: 0, timeToLive: "3s",
                    options: [
                        "--retry-base", "20ms", "--retry-maximum", "500ms", "--max-connections-per-origin", "16",
                    ],
                    prefix: ["prlimit", "--nofile=256:1024"]
                ) { fleet in
                    let (scene, balancer) = try await StormScene.start(
                        fleet, database, origins, receiver, strangers, report, isLong: Self.seconds >= 600)
                    try await strangers.begin(on: fleet.sink)
                    try await Self.run(scene, seeds)
                    try await balancer.stop()
                }
            }
            try await database.stop()
            await receiver.receiver.stop()
            try await origins.stop()
            #expect(report.count(of: .workerKilled) > 0 && report.count(of: .workerStopped) > 0)
            #expect(report.count(of: .coordinatorKilled) > 0 && report.count(of: .primaryLost) == 1)
            guard Self.seconds >= 600 else { return }
            #expect(report.missing.isEmpty)
            #expect(report.unplayed.isEmpty)
        }

        /// Shows the report, and writes it to the file that `MUSTER_STORM_REPORT` names.
        private static func write(_ report: StormReport) {
            print(report.page)
            guard let path = setting("MUSTER_STORM_REPORT") else { return }
            do {
                try Data(report.page.utf8).write(to: URL(filePath: path))
            } catch {
                Issue.record("the report can't be written: \(error)")
            }
        }

        /// The storm, the calm after it, and the checks.
        private static func run(_ scene: StormScene, _ seeds: [SeededGenerator]) async throws {
            let fleet = scene.fleet
            let client = await fleet.client()
            let cases = StormRareCases(database: scene.database, fleet: fleet)
            try await cases.watch()
            try await scene.canary.begin()
            let subscription = SubscriptionRequest(name: "s", url: scene.receiver.receiver.url, groups: "g*")
            _ = try await client.createSubscription(subscription)
            var first = StormClient(client: client, ledger: scene.ledger, origins: scene.origins, random: seeds[0])
            await first.begin()

            let reader = ScriptReader(url: await fleet.servers, file: fleet.scratch.appending("seen"), pageSize: 100)
            let end = Observed<Int64?>(nil)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    var random = seeds[1]
                    let lives = try await reader.live(until: end, pages: 5...40, using: &random)
                    scene.report.tell("lives of a reader of the log", "\(lives)")
                }
                let stale = try await Self.rage(scene, cases, seeds)
                try await Self.calm(scene)
                let oracle = StormOracle(scene: scene)
                try await oracle.waitForQuiet()
                let events = try await fleet.log()
                end.update { $0 = events.last?.position ?? 0 }
                try await group.waitForAll()
                try await oracle.check()
                try await Self.check(scene, events)
                try await cases.tell(scene.report, links: scene.links, staleReports: stale)
            }
            reader.check(last: end.value ?? 0)
            scene.report.checked("I9")
        }

        /// The storm itself. Invariants that hold at every commit are checked again and again. Returns how many stale reports were refused.
        private static func rage(
            _ scene: StormScene, _ cases: StormRareCases, _ seeds: [SeededGenerator]
        ) async throws -> Int {
            let client = await scene.fleet.client()
            let end = ContinuousClock.now + .seconds(Self.seconds)
            let counts = try await withThrowingTaskGroup(of: [Int32: Int].self, returning: [Int32: Int].self) { group in
                for seed in seeds[4...] {
                    group.addTask {
                        var one = StormClient(
                            client: client, ledger: scene.ledger, origins: scene.origins, random: seed)
                        try await one.run(until: end)
                        return [:]
                    }
                }
                group.addTask {
                    let first: [StormFault] = [.workerKilled, .workerStopped, .coordinatorKilled]
                    var lane = StormLane(.processes, scene, seeds[2], first: first)
                    try await lane.run(until: end)
                    return [:]
                }
                group.addTask {
                    var lane = StormLane(.surroundings, scene, seeds[3])
                    try await lane.run(until: end)
                    return [:]
                }
                group.addTask { try await Self.watch(scene, cases, until: end) }
                var all: [Int32: Int] = [:]
                for try await counts in group { all.merge(counts) { max($0, $1) } }
                return all
            }
            scene.report.fired(.verbs, times: scene.ledger.verbs)
            scene.report.fired(.misbehaviour, times: scene.origins.hostileRequests)
            scene.report.passedOver(.clocksJump, "not on one machine: see docs/invariants.md")
            print("storm: \(scene.ledger.deeds.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })")
            return counts.values.reduce(0, +)
        }

        /// Checks the invariants again and again. A database that is down just now is asked later.
        private static func watch(
            _ scene: StormScene, _ cases: StormRareCases, until end: ContinuousClock.Instant
        ) async throws -> [Int32: Int] {
            let oracle = StormOracle(scene: scene)
            var counts: [Int32: Int] = [:]
            while ContinuousClock.now < end {
                do {
                    // Caps of groups are lowered all the time, which takes no lease back.
                    let broken = try await oracle.broken().filter { !$0.hasPrefix("I5: group") }
                    #expect(broken.isEmpty)
                    let exceeded = try await oracle.exceededCaps()
                    #expect(exceeded.isEmpty)
                } catch let error as TestPostgres.StatementFailed where error.isOfConnection {
                    // The checks that were made are counted.
                }
                counts.merge(try await cases.staleReports()) { max($0, $1) }
                try await Task.sleep(for: .milliseconds(500))
            }
            #expect(scene.report.checks(of: "I3") > 0)
            return counts
        }

        /// The faults stop, everything is released, and then every group ends (I14).
        private static func calm(_ scene: StormScene) async throws {
            let fleet = scene.fleet
            await scene.calm()
            for origin in try await fleet.persistently({ try await $0.origins() }).items {
                let free = OriginPatch(maxConnections: .set(16), bytesPerSecond: .clear, pausedUntil: .clear)
                _ = try await fleet.persistently { try await $0.setOrigin(origin.key, free) }
            }
            try await scene.canary.end()
            let groups = try await fleet.persistently { try await $0.groups(limit: 1_000) }.items
            for group in groups where !group.state.isTerminal && group.name != StormCanary.group {
                do {
                    let free = GroupPatch(limits: .cleared, deadline: .clear, after: [])
                    _ = try await fleet.persistently { try await $0.change(group: group.name, free) }
                    _ = try await fleet.persistently { try await $0.apply(.resume, to: group.name) }
                    _ = try await fleet.persistently { try await $0.apply(.seal, to: group.name) }
                } catch let problem as Problem where problem.status == 409 {
                    // The group has ended meanwhile.
                }
            }
            let start = ContinuousClock.now
            do {
                try await eventually("the end of every group", limit: .seconds(240)) {
                    try await fleet.persistently { try await $0.groups(limit: 1_000) }.items.allSatisfy(
                        \.state.isTerminal)
                }
            } catch let error as TimedOut {
                let client = await fleet.client()
                for group in try await client.groups(limit: 1_000).items where !group.state.isTerminal {
                    print("storm: not ended: \(group)")
                    print("storm: \(try await client.groupExplanation(of: group.name))")
                }
                throw error
            }
            scene.report.checked("I14")
            scene.report.tell("every group had ended after", "\(ContinuousClock.now - start)")
        }

        /// Every event was delivered, at least once, and always with the same bytes (I9).
        private static func check(_ scene: StormScene, _ events: [EventDocument]) async throws {
            let wanted = Set(
                events.filter {
                    $0.subject.hasPrefix("groups/g")
                        && ($0.type.hasPrefix("dev.muster.group.") || $0.type.contains(".task."))
                }.map(\.id))
            for isLast in [false, false, true] {
                // The next try of a delivery that has failed may come after minutes.
                try await scene.database.execute(
                    "UPDATE deliveries SET next_at = statement_timestamp() WHERE state = 'pending' AND NOT claimed")
                do {
                    try await scene.receiver.receiver.wait(for: "every event", limit: .seconds(40)) {
                        $0.count >= wanted.count && Set($0.map(\.id)).isSuperset(of: wanted)
                    }
                    break
                } catch is TimedOut where !isLast {
                    // Some were under way when the receiver was silent, and have failed since.
                }
            }
            let deliveries = scene.receiver.receiver.deliveries
            let bodies = Dictionary(grouping: deliveries, by: \.id).mapValues { Set($0.map(\.body)) }
            #expect(Set(bodies.keys) == wanted)
            #expect(bodies.values.allSatisfy { $0.count == 1 })
            scene.report.checked("I9", times: wanted.count)
            scene.report.tell("deliveries, of so many events", "\(deliveries.count), \(wanted.count)")
        }
    }
}

extension TestPostgres.StatementFailed {
    /// Whether there was no server, or it ended the connection: not a mistake in the statement.
    fileprivate var isOfConnection: Bool {
        ["connection to server", "server closed the connection", "terminating connection", "the database system is"]
            .contains { output.contains($0) }
    }
}
