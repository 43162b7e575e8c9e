import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// A slot for a group without a connection, when other groups have all slots for long (I19, adr/0051).
@Suite struct SpareSlotTests {
    /// A worker with four slots, all taken by first requests of files whose URLs may work once: `preempt` takes none of them.
    private static func run(
        priority: Int32 = 0, _ body: @Sendable (StoreFixture, inout TestWorker) async throws -> Void
    ) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("slow", Wanted.many(8, "slow"), priority: priority)
            var worker = try await fixture.makeWorker(slots: 4)
            let held = try await worker.claim(4)
            try #require(held.count == 4)
            try await body(fixture, &worker)
            try await fixture.check("in the end")
        }
    }

    @Test func aGroupWithoutAConnectionGetsOneMore() async throws {
        try await Self.run { fixture, worker in
            #expect(try await worker.claim(0, spare: true).isEmpty, "the only group has connections")
            try await fixture.makeGroup("late", Wanted.many(8, "late", origins: ["b"]))
            #expect(try await worker.claim(0).isEmpty, "the worker has no slot to spare")
            #expect(try await worker.claim(0, spare: true).map(\.group) == ["late"])
            #expect(try await worker.claim(0, spare: true).isEmpty, "it has a connection now")
        }
    }

    /// One group has a list of files at several origins.
    @Test func anOriginToWhichItsGroupHasNoConnectionGetsOneMore() async throws {
        try await Self.run { fixture, worker in
            _ = try await fixture.add(Wanted.many(4, "good", origins: ["b"]), to: "slow")
            let more = try await worker.claim(0, spare: true)
            #expect(more.map(\.key.first) == ["g"])
            #expect(try await worker.claim(0, spare: true).isEmpty, "the group has a connection to both origins")
        }
    }

    /// Of six origins that never answer and six that do, each of the latter is asked as soon as the first four silent ones are known (I19).
    @Test func silentOriginsComeAfterTheOthers() async throws {
        try await StoreFixture.run { fixture in
            let silent = (1...6).map { "silent\($0)" }
            let good = (1...6).map { "good\($0)" }
            try await fixture.makeGroup("list", [])
            for origin in silent + good {
                _ = try await fixture.add(Wanted.many(2, origin, origins: [origin]), to: "list")
            }
            var worker = try await fixture.makeWorker(slots: 4)
            let held = try await worker.claim(4)
            #expect(held.allSatisfy { $0.key.hasPrefix("silent") } && held.count == 4)
            for lease in held { try await worker.fail(lease, .timeout) }
            let next = try await worker.claim(8)
            #expect(next.count { $0.key.hasPrefix("good") } == 6)
            #expect(Set(next.map { $0.key.prefix(7) }).isDisjoint(with: held.map { $0.key.prefix(7) }))
            try await fixture.check()
        }
    }

    @Test func theMoreUrgentGroupIsFirst() async throws {
        try await Self.run { fixture, worker in
            try await fixture.makeGroup("less", [Wanted("less", origins: ["b"])], priority: -1)
            try await fixture.makeGroup("more", [Wanted("more", origins: ["c"])], priority: 1)
            #expect(try await worker.claim(0, spare: true).map(\.group) == ["more"])
            #expect(try await worker.claim(0, spare: true).map(\.group) == ["less"], "it takes no slot from others")
        }
    }

    /// Once the trial has shown that the origin serves a file twice, its leases give way.
    @Test func aTrialOfAnOriginIsMadeBesideTheSlots() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("slow", Wanted.many(8, "slow"))
            var worker = try await fixture.makeWorker(slots: 4)
            let held = try await worker.claim(4)
            try await worker.learn(held[0], size: 1_000_000, askedForAll: true)
            try #require(
                try await fixture.value("SELECT count(*) FROM ready_chunks WHERE kind = 'trial'", as: Int64.self) == 1)
            let trial = try #require(try await worker.claim(0, spare: true).first)
            #expect(trial.kind == .trial)
            #expect(try await worker.claim(0, spare: true).isEmpty, "its group has connections")
            try await worker.servedAgain(trial)
            try await fixture.check()
        }
    }

    @Test(arguments: [false, true]) func aParkedSinkGetsNone(isFull: Bool) async throws {
        try await Self.run { fixture, worker in
            try await fixture.makeGroup("late", [Wanted("late", origins: ["b"])])
            #expect(try await worker.claim(0, spare: true, parked: ["sink"], isFull: isFull).isEmpty)
            #expect(try await worker.claim(0, spare: true).count == 1)
        }
    }

    @Test func eachSessionHasOneToSpare() async throws {
        try await Self.run { fixture, worker in
            var other = try await fixture.makeWorker("other", slots: 4)
            try #require(try await other.claim(4).count == 4)
            for name in ["one", "two", "three"] {
                try await fixture.makeGroup(name, Wanted.many(4, name, origins: [name]))
            }
            try await worker.sync()
            try await other.sync()
            let leases = try await fixture.store.claim(
                [worker, other].map { ClaimRequest(session: $0.session, sequence: $0.sequence, room: 0, spare: true) })
            #expect(Set(leases.map(\.session)).count == 2 && leases.count == 2)
            #expect(Set(leases.map(\.group)).count == 2, "each for another group")
        }
    }
}
