import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Which group is served next when some groups can't be (I14, I15).
@Suite struct ClaimFairnessTests {
    @Test func groupsWhoseOriginIsParkedOrBusyDoNotStandInTheWayOfOthers() async throws {
        try await StoreFixture.run { fixture in
            for number in 10..<50 {
                try await fixture.makeGroup(
                    "g\(number)", Wanted.many(2, "t\(number)-", origins: [number < 30 ? "a" : "b"]))
            }
            try await fixture.makeGroup("last", [Wanted("free", origins: ["c"])])
            // The other groups have been served less, and come first in every order.
            try await fixture.set("groups", "served", to: 1_000_000, of: "last")
            try await fixture.restOrigins("a", for: .seconds(3_600))
            try await fixture.capOrigins("b", at: 1)
            var worker = try await fixture.makeWorker()
            let first = try await worker.claim(1)
            #expect(first.map(\.path).allSatisfy { $0.hasPrefix("t3") || $0.hasPrefix("t4") }, "the single lane of b")
            #expect(try await worker.claim(1).map(\.path) == ["free"])
            #expect(try await worker.claim(1).isEmpty)
            try await fixture.check()
        }
    }

    /// The files of the first origin never come; its number is the lowest.
    @Test func anOriginTakesNoMoreThanItsShareOfTheSlotsWhileAnotherOfTheGroupHasWork() async throws {
        var policy = Store.Policy()
        policy.connectionsPerOrigin = 16
        try await StoreFixture.run(policy: policy) { fixture in
            let slow = Wanted.many(40, "a"), good = Wanted.many(20, "b", origins: ["b"])
            try await fixture.makeGroup("list", slow + good + Wanted.many(3, "c", origins: ["c"]))
            var worker = try await fixture.makeWorker(slots: 16)
            var running = try await worker.claim(16, ahead: 16)
            let lanes = Dictionary(grouping: running, by: \.key.first).mapValues { Set($0.map(\.lane)).count }
            #expect(lanes == ["a": 7, "b": 6, "c": 3], "what one can't use is shared among the others")
            while let next = running.first(where: { $0.key.first != "a" }) {
                running.removeAll { $0.name == next.name }
                try await worker.finish(next, size: 10)
                let isLast = !running.contains { $0.lane == next.lane }
                running += try await worker.claim(isLast ? 1 : 0)
                let silent = Set(running.filter { $0.key.first == "a" }.map(\.lane)).count
                let others = Set(running.filter { $0.key.first != "a" }.map(\.lane)).count
                #expect(silent <= 8 || others < 8, "\(silent) lanes of 16")
            }
            #expect(Set(running.map(\.lane)).count == 16)
            try await fixture.check()
        }
    }

    @Test func aGroupThatWasIdleForLongDoesNotGetEveryLeaseUntilItHasCaughtUp() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("busy", Wanted.many(2, "b"))
            try await fixture.makeGroup("idle", Wanted.many(2, "i"))
            try await fixture.joinSharing("busy", served: 1_000_000_000_000)
            var worker = try await fixture.makeWorker()
            #expect(Set(try await worker.claim(2).map(\.group)) == ["busy", "idle"])
            let served = try await fixture.groups().map(\.served)
            #expect(served[0] == served[1], "the idle group starts level with the other")
            try await fixture.check()
        }
    }

    @Test func aGroupThatIsRetriedGetsNoCreditForItsIdleTime() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("again", Wanted.many(4, "a"), isSealed: true)
            var worker = try await fixture.makeWorker()
            for lease in try await worker.claim(4) { try await worker.fail(lease, .notFound) }
            #expect(try await fixture.store.group("again").state == .failed)
            try await fixture.makeGroup("busy", Wanted.many(4, "b"))
            try await fixture.joinSharing("busy", served: 100_000_000)
            _ = try await fixture.store.apply(.retry, to: "again", keys: nil)
            let groups = try await worker.claim(4).map(\.group)
            #expect(groups.count { $0 == "busy" } == 2)
            try await fixture.check()
        }
    }

    @Test func onlyFinalizationsAreLeasedInAPausedGroup() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("whole", size: 90), Wanted("other", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 90)
            try await worker.done(lease)
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            #expect(try await worker.claim(4).map(\.kind) == [.finalize])
            try await fixture.check()
        }
    }

    @Test func aStreamThatWasPausedBeginsAgainInItsNextVersion() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("s")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: nil, isSplittable: false)
            #expect(try await worker.progress(lease, to: 40))
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
            try await worker.letGo()
            let again = try #require(try await worker.claimWork().first)
            #expect(again.rung == .whole && again.resume.offset == 0 && again.version == lease.version + 1)
            try await fixture.check()
        }
    }
}
