import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// How groups share the fleet: by priority, and by bytes within a priority (I15). Only bytes of leases that ran while every group
/// had something to fetch are counted.
@Suite struct GrantSharingTests {
    private static let kibibyte: Int64 = 1_024

    @Test(
        arguments: [
            // Room per sync: one lease at a time, a few, and as many as small files need.
            (1, 64, 256), (7, 64, 1_024), (64, 16, 512), (64, 32, 32), (64, 512, 16),
        ] as [(Int32, Int64, Int64)])
    func groupsOfOneWeightShareBytesEquallyWhateverTheirFilesAre(
        room: Int32, first: Int64, second: Int64
    ) async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            var sharing = Sharing(fixture: fixture, room: room)
            try await sharing.add("one", file: first * Self.kibibyte)
            try await sharing.add("two", file: second * Self.kibibyte)
            try await sharing.run(untilBytes: max(64 * max(first, second), 512 * min(first, second)) * Self.kibibyte)
            let part = sharing.part(of: "one")
            #expect(abs(part - 0.5) <= 0.025, "\(part) of the bytes were of files of \(first) KiB")
            try await fixture.check()
        }
    }

    @Test func bytesAreSharedByWeight() async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            var sharing = Sharing(fixture: fixture, room: 8)
            try await sharing.add("heavy", file: 100 * Self.kibibyte, weight: 3)
            try await sharing.add("light", file: 700 * Self.kibibyte, weight: 1)
            try await sharing.run(untilBytes: 48 << 20)
            let part = sharing.part(of: "heavy")
            #expect(abs(part - 0.75) <= 0.0375, "\(part) of the bytes were of the group with three times the weight")
            try await fixture.check()
        }
    }

    @Test func filesOfUnknownSizesShareBytesAsWell() async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            var sharing = Sharing(fixture: fixture, room: 8)
            try await sharing.add("known", file: 256 * Self.kibibyte)
            // Each is charged the average of such files, and corrected by the bytes it brings.
            try await sharing.add("unknown", file: 40 * Self.kibibyte, isKnown: false)
            try await sharing.run(untilBytes: 24 << 20)
            let part = sharing.part(of: "unknown")
            #expect(abs(part - 0.5) <= 0.025, "\(part) of the bytes were of files of unknown sizes")
            try await fixture.check()
        }
    }

    @Test func failedLeaseIsChargedOnlyForTheBytesItBrought() async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            var sharing = Sharing(fixture: fixture, room: 8)
            try await sharing.add("sound", file: 1_024 * Self.kibibyte)
            try await sharing.add("broken", file: 1_024 * Self.kibibyte)
            // Every file's first lease is released after a quarter of its bytes.
            sharing.breaks = ["broken"]
            try await sharing.run(untilBytes: 48 << 20)
            let part = sharing.part(of: "broken")
            #expect(abs(part - 0.5) <= 0.025, "\(part) of the bytes were of leases that break")
            try await fixture.check()
        }
    }

    @Test func aGroupThatComesBackStartsLevelWithTheOthers() async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            var sharing = Sharing(fixture: fixture, room: 4)
            try await sharing.add("steady", file: 512 * Self.kibibyte)
            try await sharing.add("resting", file: 512 * Self.kibibyte)
            try await sharing.run(untilBytes: 8 << 20)
            try await sharing.apply(.pause, to: "resting")
            try await sharing.run(untilBytes: 24 << 20)
            #expect(sharing.part(of: "steady") == 1)
            try await sharing.apply(.resume, to: "resting")
            try await sharing.run(untilBytes: 24 << 20)
            let part = sharing.part(of: "resting")
            #expect(abs(part - 0.5) <= 0.05, "\(part) of the bytes since it came back were its own")
            // A group that was never served gets no credit either.
            try await sharing.add("new", file: 512 * Self.kibibyte)
            try await sharing.run(untilBytes: 32 << 20)
            let fresh = sharing.part(of: "new")
            #expect(abs(fresh - 1.0 / 3) <= 0.05, "\(fresh) of the bytes since it was there were the new group's")
            try await fixture.check()
        }
    }

    @Test func lowerPriorityGetsTheRest() async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            try await fixture.makeGroup("low", Wanted.many(60, "l", size: 10), weight: 1_000)
            try await fixture.makeGroup("high", Wanted.many(20, "h", size: 90), priority: 1)
            try await fixture.makeGroup("higher", Wanted.many(3, "x", size: 90), priority: 2)
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(5).map(\.group).sorted() == ["high", "high", "higher", "higher", "higher"])
            #expect(Set(try await worker.claim(10).map(\.group)) == ["high"])
            // Work-conserving: no room stays free while any group has work.
            let rest = try await worker.claim(30)
            #expect(rest.count { $0.group == "high" } == 8 && rest.count { $0.group == "low" } == 22)
            try await fixture.check()
        }
    }

    @Test func aCappedGroupLeavesItsTurnToOthers() async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            try await fixture.makeGroup("capped", Wanted.many(60, "c", size: 90), maxConnections: 3)
            try await fixture.makeGroup("busy", Wanted.many(60, "b", size: 90, origins: ["b"]))
            try await fixture.makeGroup("free", Wanted.many(60, "f", size: 90, origins: ["f"]))
            try await fixture.capOrigins("b", at: 2)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(40)
            let counts = Dictionary(grouping: leases, by: \.group).mapValues(\.count)
            #expect(counts == ["capped": 3, "busy": 2, "free": 35])
            try await fixture.check()
        }
    }

    @Test func noneOfManyGroupsOnOneBusyOriginIsForgotten() async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            var sharing = Sharing(fixture: fixture, room: 3)
            for number in 1...3 {
                try await sharing.add("busy\(number)", file: 64 * Self.kibibyte, origin: "busy")
            }
            try await sharing.add("free", file: 100_000 * Self.kibibyte, origin: "free")
            _ = try await fixture.store.setOrigin("http://busy.test:80", maxConnections: .set(1))
            // The free group gets far ahead of the others, which share one connection.
            try await sharing.run(untilBytes: 6 << 30)
            for number in 1...3 {
                let part = sharing.part(of: "busy\(number)", among: ["busy1", "busy2", "busy3"])
                #expect(abs(part - 1.0 / 3) <= 0.05, "\(part) of the busy origin's bytes were of group \(number)")
            }
            try await fixture.check()
        }
    }

    @Test func onlyFinalizationsOfAHeldGroupAreLeased() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("whole", size: 90), Wanted("other", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 90)
            try await worker.done(lease)
            try await fixture.set("groups", "held", to: true)
            #expect(try await worker.claim(4).map(\.kind) == [.finalize])
            #expect(try await worker.claim(4).isEmpty)
            try await fixture.set("groups", "held", to: false)
            #expect(try await worker.claim(4).map(\.path) == ["other"])
            try await fixture.check()
        }
    }

    @Test func groupsOfRandomShapesAreServedByWeight() async throws {
        let seed = UInt64.random(in: .min ... .max)
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            var random = SeededGenerator(seed: seed)
            var sharing = Sharing(fixture: fixture, room: Int32.random(in: 4...40, using: &random))
            var weights: [String: Double] = [:]
            for number in 1...Int.random(in: 3...5, using: &random) {
                let weight = Int32.random(in: 1...3, using: &random)
                weights["g\(number)"] = Double(weight)
                try await sharing.add(
                    "g\(number)", file: Int64.random(in: 16...100, using: &random) * Self.kibibyte, weight: weight,
                    isKnown: Bool.random(using: &random))
            }
            try await sharing.run(untilBytes: 40 << 20)
            let whole = weights.values.reduce(0, +)
            for (group, weight) in weights {
                let part = sharing.part(of: group)
                #expect(abs(part * whole / weight - 1) <= 0.1, "\(group) of weight \(weight) got \(part); seed \(seed)")
            }
            try await fixture.check("seed \(seed)")
        }
    }
}
