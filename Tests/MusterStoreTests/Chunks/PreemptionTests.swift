import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Connections given up for a more urgent group, or because a cap was made smaller (I5, I15).
@Suite struct PreemptionTests {
    /// A file of 2,000 bytes in chunks of 100, of which a worker has held some for a minute: it is slow.
    private struct Scene {
        let fixture: StoreFixture
        var worker: TestWorker
        let held: [GrantedLease]

        static func begin(
            _ fixture: StoreFixture, lanes: Int32, cap: Int32, slots: Int32 = 8, maxConnections: Int32? = nil
        ) async throws -> Scene {
            try await fixture.makeGroup("slow", [Wanted("file")], maxConnections: maxConnections)
            try await fixture.capOrigins(at: cap)
            var worker = try await fixture.makeWorker(slots: slots)
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 2_000)
            try await worker.done(first)
            let held = try await worker.claim(lanes)
            try #require(held.count == Int(lanes))
            for lease in held { try await worker.progress(lease, to: lease.start + 10) }
            try await fixture.passMinute()
            try await fixture.age(.progress, by: .seconds(60))
            return Scene(fixture: fixture, worker: worker, held: held)
        }

        /// The shrink requests to the worker, each to end its chunk at the current offset.
        func wishes() async throws -> [ShrinkWish] { try await fixture.store.shrinkWishes(of: worker.session) }

        /// Follows each request at the tenth byte of the chunk; returns the number of requests.
        func yield() async throws -> Int {
            let wishes = try await wishes()
            for wish in wishes {
                let lease = try #require(held.first { $0.name == wish.lease })
                #expect(wish.end == lease.start, "as early as it can")
                #expect(try await worker.shrink(lease, to: lease.start + 10) == .agreed)
                try await worker.done(lease)
            }
            return wishes.count
        }
    }

    @Test func anUrgentFileGetsAConnectionOfALessUrgentOne() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene.begin(fixture, lanes: 4, cap: 4)
            #expect(try await fixture.store.preempt().isEmpty, "nothing is more urgent")
            try await fixture.makeGroup("urgent", [Wanted("now")], priority: 1_000)
            #expect(try await scene.worker.claim(8).isEmpty)
            #expect(try await fixture.store.preempt() == [scene.worker.session])
            #expect(try await fixture.store.preempt().isEmpty, "the worker has been asked already")
            try await fixture.check("asked")
            #expect(try await scene.yield() == 1)
            try await fixture.check("given up")
            #expect(try await scene.worker.claim(1).map(\.group) == ["urgent"])
            // Bytes already fetched are not fetched again.
            #expect(try await fixture.doneChunks().count { $0.count == 10 } == 1)
            try await scene.worker.finishEverything(size: 2_000)
            try await fixture.check("in the end")
        }
    }

    /// All connections that a group may have lead to origins that do not answer (I19).
    @Test func aGroupAtItsCapGivesASilentConnectionToAnotherOrigin() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("list", Wanted.many(2, "silent", origins: ["a"]), maxConnections: 2)
            var worker = try await fixture.makeWorker()
            let held = try await worker.claim(2)
            try #require(held.count == 2)
            _ = try await fixture.add([Wanted("good", origins: ["b"])], to: "list")
            try await fixture.age(.grant, by: .seconds(59))
            #expect(try await fixture.store.preempt().isEmpty, "its URL may work once, and the answer may come")
            try await fixture.age(.grant, by: .seconds(2))
            #expect(try await fixture.store.preempt() == [worker.session])
            let wish = try #require(try await fixture.store.shrinkWishes(of: worker.session).first)
            try await worker.release(try #require(held.first { $0.name == wish.lease }), at: 0)
            #expect(try await worker.claim(2).map(\.key) == ["good"], "the silent origin comes later")
            #expect(try await fixture.store.preempt().isEmpty, "no other origin waits")
            try await fixture.check("in the end")
        }
    }

    /// A connection without bytes may stay silent for minutes.
    @Test(arguments: [(1_000, 4), (0, 11)] as [(Int32, Int64)])
    func aSilentConnectionGoesToAWaitingGroup(priority: Int32, seconds: Int64) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("silent", Wanted.many(4, "silent"))
            try await fixture.capOrigins(at: 4)
            try await fixture.setServesAgain()
            var worker = try await fixture.makeWorker()
            let held = try await worker.claim(4)
            try await fixture.makeGroup("waiting", [Wanted("now")], priority: priority)
            try await fixture.age(.grant, by: .seconds(2))
            #expect(try await fixture.store.preempt().isEmpty, "an answer may come")
            try await fixture.age(.grant, by: .seconds(seconds - 2))
            #expect(try await fixture.store.preempt() == [worker.session])
            let wish = try #require(try await fixture.store.shrinkWishes(of: worker.session).first)
            let lease = try #require(held.first { $0.name == wish.lease })
            #expect(wish.end == lease.start && wish.isUntouched)
            try await worker.release(lease, at: 0)
            #expect(try await worker.claim(1).map(\.group) == ["waiting"])
            try await fixture.check()
            // The next time its silence is tolerated for twice as long.
            try await fixture.capOrigins(at: 5)
            let again = try await worker.claim(1)
            #expect(again.map(\.name.chunk) == [lease.name.chunk])
            let row = try await fixture.leases().first { $0.chunkId == lease.name.chunk.rawValue }
            #expect(row?.shrinkAsks == 1)
        }
    }

    @Test(arguments: [(1, 2), (3, 3)] as [(Int32, Int)])
    func groupsOfOnePriorityShareTheConnectionsByTheirWeights(weight: Int32, expected: Int) async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene.begin(fixture, lanes: 4, cap: 4)
            try await fixture.makeGroup("late", Wanted.many(8, "late"), weight: weight)
            #expect(try await fixture.store.preempt().count == expected)
            #expect(try await scene.yield() == expected)
            let groups = try await scene.worker.claim(8).map(\.group)
            #expect(groups == Array(repeating: "late", count: expected))
            for _ in 0..<2 {
                try await fixture.passMinute()
                #expect(try await fixture.store.preempt().isEmpty, "both groups have their shares")
            }
            try await fixture.check()
        }
    }

    /// No origin is full, but no worker has a slot free: a group with slow files at one origin gives up slots for another group's origin (I19).
    @Test(arguments: [(1, 2), (3, 3)] as [(Int32, Int)])
    func groupsOfOnePriorityShareTheSlotsByTheirWeights(weight: Int32, expected: Int) async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene.begin(fixture, lanes: 4, cap: 8, slots: 4)
            try await fixture.makeGroup("late", Wanted.many(8, "late", origins: ["b"]), weight: weight)
            #expect(try await fixture.store.preempt().count == expected)
            #expect(try await scene.yield() == expected)
            let groups = try await scene.worker.claim(Int32(expected)).map(\.group)
            #expect(groups == Array(repeating: "late", count: expected))
            for _ in 0..<2 {
                try await fixture.passMinute()
                #expect(try await fixture.store.preempt().isEmpty, "both groups have their shares")
            }
            try await fixture.check()
        }
    }

    /// Its files bring nothing, so that by bytes it would always be the next to be served.
    @Test func aSilentGroupGivesUpSlotsAfterTenSeconds() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("silent", Wanted.many(8, "silent"))
            var worker = try await fixture.makeWorker(slots: 4)
            let held = try await worker.claim(4)
            try #require(held.count == 4)
            try await fixture.makeGroup("waiting", Wanted.many(8, "waiting", origins: ["b"]))
            #expect(try await fixture.store.preempt().isEmpty, "an answer may come")
            try await fixture.age(.grant, by: .seconds(11))
            #expect(try await fixture.store.preempt().count == 2)
            for wish in try await fixture.store.shrinkWishes(of: worker.session) {
                try await worker.release(try #require(held.first { $0.name == wish.lease }), at: 0)
            }
            #expect(try await worker.claim(2).map(\.group) == ["waiting", "waiting"])
            try await fixture.check()
        }
    }

    /// The group waits for its budget on all lanes, and has received next to nothing: by bytes it would always be the next to be served.
    @Test func aGroupThatWaitsForItsBudgetKeepsOnlyItsShareOfTheLanes() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene.begin(fixture, lanes: 4, cap: 4)
            try await fixture.limitGroups(to: 1_000)
            try await fixture.joinSharing("slow", served: 0)
            try await fixture.makeGroup("other", Wanted.many(20, size: 20))
            try await fixture.joinSharing("other", served: 1_000_000)
            #expect(try await fixture.store.preempt().count == 2)
            #expect(try await scene.yield() == 2)
            #expect(Set(try await scene.worker.claim(2).map(\.group)) == ["other"])
        }
    }

    @Test func anEmptyFileThatWaitsInALaneIsNotAskedToEndSooner() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene.begin(fixture, lanes: 4, cap: 4)
            try await fixture.empty(try #require(scene.held.min { $0.start < $1.start }))
            try await fixture.makeGroup("urgent", Wanted.many(4), priority: 1_000)
            #expect(try await fixture.store.preempt().count == 3)
        }
    }

    @Test func noMoreLanesAreGivenUpThanThereIsWorkFor() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene.begin(fixture, lanes: 4, cap: 4)
            try await fixture.makeGroup("late", [Wanted("late")], weight: 3)
            #expect(try await fixture.store.preempt().count == 1)
            #expect(try await scene.yield() == 1)
        }
    }

    /// The giver's charge for bytes to come is corrected later; the taker's service level is not.
    @Test func aGroupThatTakesLanesJoinsBelowTheGiversProvisionalCharge() async throws {
        try await StoreFixture.run { fixture in
            _ = try await Scene.begin(fixture, lanes: 4, cap: 4)
            let charge: Int64 = 50_000_000
            try await fixture.charge(charge)
            try await fixture.makeGroup("late", Wanted.many(8, "late"))
            #expect(try await fixture.store.preempt().count == 2)
            let (late, slow) = (try await fixture.served("late"), try await fixture.served("slow"))
            #expect(late <= slow - 4 * charge)
        }
    }

    @Test func chunkThatSoonEndsIsNotGivenUpToAnEqualGroup() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene.begin(fixture, lanes: 4, cap: 4)
            for lease in scene.held { try await scene.worker.progress(lease, to: lease.start + 99) }
            try await fixture.makeGroup("equal", Wanted.many(4))
            #expect(try await fixture.store.preempt().isEmpty)
            let equal = try #require(try await fixture.groups().last)
            #expect(equal.sharesAt == nil && equal.served == 0, "a group that gets nothing earns no credit")
        }
    }

    @Test func nothingIsGivenUpIfAConnectionIsFreeForTheUrgentGroup() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene.begin(fixture, lanes: 4, cap: 5)
            try await fixture.makeGroup("urgent", [Wanted("now")], priority: 1)
            #expect(try await fixture.store.preempt().isEmpty)
            #expect(try await scene.wishes().isEmpty)
        }
    }

    @Test func aSlotIsGivenUpForAnotherOriginWhereNoneIsFree() async throws {
        try await StoreFixture.run { fixture in
            // A session has eight slots.
            var scene = try await Scene.begin(fixture, lanes: 8, cap: 16)
            try await fixture.makeGroup("urgent", Wanted.many(2, "u", origins: ["b"]), priority: 1)
            #expect(try await fixture.store.preempt().count == 2)
            #expect(try await scene.yield() == 2)
            #expect(try await scene.worker.claim(2).map(\.group) == ["urgent", "urgent"])
            try await fixture.check()
        }
    }

    @Test func noMoreSlotsAreGivenUpThanAnotherOriginHasConnections() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene.begin(fixture, lanes: 8, cap: 16)
            try await fixture.makeGroup("urgent", Wanted.many(20, "u", origins: ["b"]), priority: 1)
            try await fixture.capOrigins("b", at: 3)
            #expect(try await fixture.store.preempt().count == 3)
            #expect(try await scene.yield() == 3)
        }
    }

    @Test(arguments: ["max_connections = 1", "state = 'paused'", "sink"])
    func nothingIsGivenUpForAGroupThatCanNotRun(_ reason: String) async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene.begin(fixture, lanes: 4, cap: 4)
            try await fixture.makeGroup(
                "urgent", Wanted.many(3), sink: reason == "sink" ? "elsewhere" : "sink", priority: 9, maxConnections: 1)
            switch reason {
            case "sink": break
            case "state = 'paused'": _ = try await fixture.store.apply(.pause, to: "urgent", keys: nil)
            default:
                // The group has all the connections that it may have.
                #expect(try await fixture.store.preempt().count == 1)
                #expect(try await scene.yield() == 1)
                #expect(try await scene.worker.claim(1).map(\.group) == ["urgent"])
            }
            #expect(try await fixture.store.preempt().isEmpty)
        }
    }

    @Test func leasesQueuedInTheLaneAreAskedForToo() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene.begin(fixture, lanes: 2, cap: 2)
            try await fixture.set(.grant, ago: .zero)
            let waiting = try await scene.worker.claim(0, ahead: 2)
            try #require(waiting.count == 2)
            try await fixture.passMinute()
            try await fixture.makeGroup("urgent", [Wanted("now")], priority: 1)
            #expect(try await fixture.store.preempt().count == 2)
            let asked = Set(try await scene.wishes().map(\.lease))
            let lane = try #require(scene.held.first { asked.contains($0.name) }?.lane)
            #expect(asked == Set((scene.held + waiting).filter { $0.lane == lane }.map(\.name)))
        }
    }

    @Test func aSmallerCapOfAnOriginEndsRunningLeases() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene.begin(fixture, lanes: 4, cap: 4)
            try await fixture.capOrigins(at: 1)
            #expect(try await fixture.store.preempt().count == 3)
            #expect(try await scene.yield() == 3)
            #expect(try await fixture.store.preempt().isEmpty)
            #expect(try await scene.worker.claim(4).isEmpty)
            try await fixture.check()
        }
    }

    @Test func aSmallerCapOfAGroupEndsRunningLeases() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene.begin(fixture, lanes: 4, cap: 16, maxConnections: 4)
            try await fixture.capGroups(at: 2)
            #expect(try await fixture.store.preempt().count == 2)
            #expect(try await scene.yield() == 2)
            #expect(try await fixture.store.preempt().isEmpty)
            try await fixture.check()
        }
    }

    @Test func aHolderThatCanNotShortenItsChunkIsAskedLessAndLessOften() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene.begin(fixture, lanes: 1, cap: 1)
            try await fixture.makeGroup("urgent", [Wanted("now")], priority: 1)
            #expect(try await fixture.store.preempt().count == 1)
            #expect(try await scene.worker.shrink(scene.held[0], to: .max) == .kept)
            #expect(try await fixture.store.preempt().isEmpty)
            try await fixture.age(.shrinkRequest, by: .seconds(7))
            #expect(try await fixture.store.preempt().count == 1)
        }
    }
}
