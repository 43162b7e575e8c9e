import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// Byte budgets of groups, origins and the fleet as two workers are told of them, spoken by hand over HTTP (`docs/protocol.md`).
@Suite("Byte budgets over HTTP")
struct ByteBudgetAPITests {
    private static let origin = "http://127.0.0.1:1"
    private static let group = BudgetShare.name(group: "g")

    /// One worker, sync after sync. It keeps the leases that it gets and never finishes anything.
    private struct Puppet {
        let client: MusterClient
        let session: SessionID
        var sequence: Int64 = 0
        var held: [LeaseName] = []
        /// Its shares by budget name, from the last answer.
        var shares: [String: Int64] = [:]

        init(_ client: MusterClient, _ name: String) async throws {
            self.client = client
            session = try await client.openSession(
                SessionRequest(name: name, sinks: ["default"], slots: 8, version: "test")
            ).id
        }

        /// Syncs with every earlier answer settled, and reports the shares that it keeps to. Returns the number of new leases.
        @discardableResult
        mutating func sync(room: Int = 0, wait: Int64 = 0, used: Int64 = 0) async throws -> Int {
            try await sync(
                room: room, wait: wait,
                traffic: shares.map { Traffic(budget: $0.key, bytes: used, bytesPerSecond: $0.value, isShort: true) })
        }

        /// Syncs with every earlier answer settled. Returns the number of new leases.
        @discardableResult
        mutating func sync(room: Int = 0, wait: Int64 = 0, traffic: [Traffic]) async throws -> Int {
            sequence += 1
            let answer = try await client.sync(
                session,
                SyncRequest(
                    sequence: sequence, settled: sequence - 1, held: held, room: room, waitMilliseconds: wait,
                    traffic: traffic))
            held += answer.leases.map(\.name)
            shares = Dictionary(uniqueKeysWithValues: (answer.budgets ?? []).map { ($0.name, $0.bytesPerSecond) })
            return answer.leases.count
        }
    }

    /// Makes the group "g" of eight files from one origin.
    private static func makeGroup(_ coordinator: RunningCoordinator, bytesPerSecond: Int64? = nil) async throws {
        let tasks = (0..<8).map { TaskRequest(urls: ["\(origin)/\($0)"], size: 10) }
        _ = try await coordinator.client.createGroup(
            GroupRequest(name: "g", sealed: true, limits: GroupLimits(bytesPerSecond: bytesPerSecond), tasks: tasks))
    }

    private static func with(
        fleetRate: Int64? = nil, _ body: @Sendable (RunningCoordinator) async throws -> Void
    ) async throws {
        try await RunningCoordinator.with(configure: { $0.maxBytesPerSecond = fleetRate }, body)
    }

    @Test func everyBudgetThatALeaseDrawsFromIsShared() async throws {
        try await Self.with(fleetRate: 9_000) { coordinator in
            try await Self.makeGroup(coordinator, bytesPerSecond: 2_000)
            _ = try await coordinator.client.setOrigin(Self.origin, OriginPatch(bytesPerSecond: .set(4_000)))
            var one = try await Puppet(coordinator.client, "one")
            var two = try await Puppet(coordinator.client, "two")
            #expect(try await one.sync(room: 2) == 2)
            #expect(one.shares == [Self.group: 1_000, BudgetShare.name(origin: Self.origin): 2_000, "fleet": 4_500])
            #expect(try await two.sync(room: 2) == 2)
            #expect(two.shares == one.shares, "the rest is kept for the next session")
        }
    }

    @Test func sessionWithoutABudgetShareIsLeasedNothingUntilAnotherGivesSomeBack() async throws {
        try await Self.with { coordinator in
            try await Self.makeGroup(coordinator, bytesPerSecond: 9_000)
            var first = try await Puppet(coordinator.client, "first")
            #expect(try await first.sync(room: 2) == 2)
            #expect(first.shares == [Self.group: 9_000])
            var second = try await Puppet(coordinator.client, "second")
            #expect(try await second.sync(room: 1) == 0)

            // The first worker's share is cut; the cut counts only after that worker has confirmed it with its next sync.
            try await first.sync(used: 9_000)
            let offered = try #require(first.shares[Self.group])
            #expect((1..<9_000).contains(offered))
            #expect(try await second.sync(room: 1) == 0, "the first worker has not confirmed its answer yet")
            try await first.sync(used: 9_000)
            #expect(try await second.sync(room: 1) == 1)
            #expect(second.shares == [Self.group: 9_000 - offered])
        }
    }

    @Test func aRateThatIsSetOrTakenAwayReachesWhatIsUnderWay() async throws {
        try await Self.with { coordinator in
            try await Self.makeGroup(coordinator)
            var worker = try await Puppet(coordinator.client, "w")
            #expect(try await worker.sync(room: 8) == 8)
            #expect(worker.shares.isEmpty)
            for rate: Int64 in [5_000, 2_000] {
                let limits = GroupLimitsPatch(bytesPerSecond: .set(rate))
                _ = try await coordinator.client.change(group: "g", GroupPatch(limits: limits))
                // The coordinator looks for rates once a second; the loop syncs until it has found the new one.
                for _ in 0..<100 where worker.shares[Self.group] != rate { try await worker.sync(room: 1, wait: 200) }
                #expect(worker.shares == [Self.group: rate])
            }
            _ = try await coordinator.client.change(
                group: "g", GroupPatch(limits: GroupLimitsPatch(bytesPerSecond: .clear)))
            try await worker.sync(used: 2_000)
            #expect(worker.shares.isEmpty)
        }
    }

    @Test func trafficWithoutBoundsIsRefused() async throws {
        try await Self.with { coordinator in
            var worker = try await Puppet(coordinator.client, "w")
            let many = (0...Limits.heldPerSync).map { Traffic(budget: "group:\($0)", bytes: 1) }
            await #expect { try await worker.sync(traffic: many) } throws: { ($0 as? Problem)?.pointer == "/traffic" }
            // An unknown budget, a negative number of bytes and an overlong name change nothing.
            try await worker.sync(traffic: [Traffic(budget: "group:nobody", bytes: -1)])
            try await worker.sync(traffic: [Traffic(budget: String(repeating: "g", count: 2_001), bytes: 1)])
            #expect(worker.shares.isEmpty)
        }
    }
}
