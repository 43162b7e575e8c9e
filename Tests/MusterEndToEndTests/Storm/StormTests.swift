import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Everything at once (F1–F3, F10, F15, F17): two coordinators, eight workers, nginx and origins that misbehave, twenty groups, several
    /// clients that send every verb at random, and processes that die or sleep.
    @Suite struct Storm {
        /// How long it lasts, in seconds: `MUSTER_STORM_SECONDS`, or a minute.
        private static var seconds: Int {
            ProcessInfo.processInfo.environment["MUSTER_STORM_SECONDS"].flatMap { Int($0) } ?? 60
        }

        @Test func everyGroupEndsOnceAndEveryFileIsRightInAStormOfRequestsAndDeaths() async throws {
            var random = SeededGenerator.forTest()
            let origins = try await StormOrigins.start(using: &random)
            let receiver = try await WebhookReceiver.start()
            let seeds = (0..<6).map { _ in SeededGenerator(seed: random.next()) }
            try await Fleet.run(
                coordinators: 2, timeToLive: "3s",
                options: ["--retry-base", "20ms", "--retry-maximum", "500ms", "--max-connections-per-origin", "16"]
            ) { fleet in
                let ledger = StormLedger()
                let client = await fleet.client()
                for name in StormClient.workers { try await fleet.startWorker(name) }
                _ = try await client.createSubscription(SubscriptionRequest(name: "s", url: receiver.url, groups: "g*"))
                var first = StormClient(client: client, ledger: ledger, origins: origins, random: random)
                await first.begin()

                let reader = ScriptReader(
                    url: await fleet.coordinators[0].url, file: fleet.scratch.appending("seen"), pageSize: 100)
                let end = Observed<Int64?>(nil)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        var random = seeds[0]
                        let lives = try await reader.live(until: end, pages: 5...40, using: &random)
                        print("storm: the reader of the log was started \(lives) times")
                    }
                    try await Self.rage(fleet, ledger, origins, seeds)
                    try await Self.calm(fleet, origins)
                    let oracle = StormOracle(fleet: fleet, ledger: ledger, origins: origins)
                    try await oracle.waitForQuiet()
                    let events = try await fleet.log()
                    end.update { $0 = events.last?.position ?? 0 }
                    try await group.waitForAll()
                    try await oracle.check()
                    try await Self.check(receiver, events)
                }
                reader.check(last: end.value ?? 0)
            }
            await receiver.stop()
            try await origins.stop()
        }

        /// The storm itself. Invariants that hold at every commit are checked again and again.
        private static func rage(
            _ fleet: Fleet, _ ledger: StormLedger, _ origins: StormOrigins, _ seeds: [SeededGenerator]
        ) async throws {
            let client = await fleet.client()
            let end = ContinuousClock.now + .seconds(Self.seconds)
            let tally = try await withThrowingTaskGroup(of: StormFaults.Tally?.self) { group in
                for seed in seeds[2...] {
                    group.addTask {
                        var one = StormClient(client: client, ledger: ledger, origins: origins, random: seed)
                        try await one.run(until: end)
                        return nil
                    }
                }
                group.addTask {
                    var faults = StormFaults(fleet: fleet, random: seeds[1])
                    return try await faults.run(until: end)
                }
                group.addTask {
                    while ContinuousClock.now < end {
                        // Caps of groups are lowered all the time, which takes no lease back.
                        let broken = try await StormOracle.broken(fleet).filter { !$0.hasPrefix("I5: group") }
                        #expect(broken.isEmpty)
                        let exceeded = try await StormOracle.exceededCaps(fleet, ledger)
                        #expect(exceeded.isEmpty)
                        try await Task.sleep(for: .milliseconds(500))
                    }
                    return nil
                }
                return try await group.reduce(StormFaults.Tally()) { $1 ?? $0 }
            }
            print("storm: \(tally); \(ledger.deeds.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })")
            #expect(tally.kills > 0 && tally.stops > 0 && tally.coordinatorKills == 1)
        }

        /// The faults stop, everything is released, and then every group ends (I14).
        private static func calm(_ fleet: Fleet, _ origins: StormOrigins) async throws {
            origins.calm()
            let client = await fleet.client()
            for origin in try await fleet.persistently({ try await $0.origins() }).items {
                let free = OriginPatch(maxConnections: .set(16), bytesPerSecond: .clear, pausedUntil: .clear)
                _ = try await client.setOrigin(origin.key, free)
            }
            for group in try await client.groups(limit: 1_000).items where !group.state.isTerminal {
                do {
                    let free = GroupPatch(limits: .cleared, deadline: .clear, after: [])
                    _ = try await client.change(group: group.name, free)
                    _ = try await client.apply(.resume, to: group.name)
                    _ = try await client.apply(.seal, to: group.name)
                } catch let problem as Problem where problem.status == 409 {
                    // The group has ended meanwhile.
                }
            }
            let start = ContinuousClock.now
            do {
                try await eventually("the end of every group", limit: .seconds(240)) {
                    try await client.groups(limit: 1_000).items.allSatisfy(\.state.isTerminal)
                }
            } catch let error as TimedOut {
                for group in try await client.groups(limit: 1_000).items where !group.state.isTerminal {
                    print("storm: not ended: \(group)")
                    print("storm: \(try await client.groupExplanation(of: group.name))")
                }
                throw error
            }
            print("storm: everything had ended \(ContinuousClock.now - start) after the faults stopped")
        }

        /// Every event was delivered, at least once, and always with the same bytes (I9).
        private static func check(_ receiver: WebhookReceiver, _ events: [EventDocument]) async throws {
            let wanted = Set(
                events.filter { $0.type.hasPrefix("dev.muster.group.") || $0.type.contains(".task.") }.map(\.id))
            let deliveries = try await receiver.wait(for: "every event", limit: .seconds(120)) {
                $0.count >= wanted.count && Set($0.map(\.id)).count >= wanted.count
            }
            let bodies = Dictionary(grouping: deliveries, by: \.id).mapValues { Set($0.map(\.body)) }
            #expect(Set(bodies.keys) == wanted)
            #expect(bodies.values.allSatisfy { $0.count == 1 })
            print("storm: \(deliveries.count) deliveries of \(wanted.count) events")
        }
    }
}
