import MusterCore
import MusterStore
import Testing

/// What groups with ready chunks wait for.
@Suite struct QueueTests {
    @Test func moreUrgentGroupsKeepAFullOriginToThemselves() async throws {
        try await StoreFixture.run { fixture in
            let high = try await fixture.makeGroup("high", Wanted.many(5, "h"), priority: 5)
            let same = try await fixture.makeGroup("same", Wanted.many(2, "s"), priority: 5)
            let low = try await fixture.makeGroup("low", Wanted.many(2, "l"))
            try await fixture.capOrigins(at: 2)
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(2).count == 2)
            let queues = try await fixture.store.queues(of: [high.id, same.id, low.id])
            let urgent = UrgentGroups(names: ["high", "same"], count: 2, priority: 5)
            let origin = GroupQueue.Origin(key: "http://a.test:80", isFull: true, urgent: urgent)
            #expect(queues[low.id] == GroupQueue(origins: [origin], areWorkersBusy: false))
            #expect(queues[high.id]?.urgent == [:] && queues[same.id]?.urgent == [:])
            #expect(try await fixture.store.explanation(of: "low").situation.urgent == ["http://a.test:80": urgent])
            let task = try await fixture.store.explanation(of: "l1", in: "low").situation
            #expect(task.urgent == ["http://a.test:80": urgent])
        }
    }

    @Test func groupsAtTheirCapsTakeOnlyTheConnectionsThatTheyHave() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("a", Wanted.many(5, "a"), priority: 5, maxConnections: 1)
            let middle = try await fixture.makeGroup("b", Wanted.many(5, "b"), priority: 4, maxConnections: 1)
            let low = try await fixture.makeGroup("low", Wanted.many(5, "l"))
            try await fixture.capOrigins(at: 2)
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(2).count == 2)
            let queues = try await fixture.store.queues(of: [middle.id, low.id])
            #expect(queues[middle.id]?.urgent == [:], "the one of the two connections that ends may be its own")
            #expect(queues[low.id]?.urgent.values.map(\.names) == [["a", "b"]])
            try await fixture.capOrigins(at: 3)
            #expect(try await worker.claim(1).count == 1)
            #expect(try await fixture.store.queues(of: [low.id])[low.id]?.urgent == [:], "one connection is its own")
        }
    }

    @Test func moreUrgentGroupsComeFirstWhereAllWorkersAreBusy() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("high", Wanted.many(3, "h"), priority: 5)
            let low = try await fixture.makeGroup("low", Wanted.many(3, "l"))
            var worker = try await fixture.makeWorker(slots: 1)
            #expect(try await worker.claim(1).count == 1)
            var queue = try #require(try await fixture.store.queues(of: [low.id])[low.id])
            #expect(queue.areWorkersBusy && queue.origins.map(\.isFull) == [false])
            #expect(queue.urgent.values.map(\.names) == [["high"]])
            #expect(queue.urgentForSlots == UrgentGroups(names: ["high"], count: 1, priority: 5))
            _ = try await fixture.store.change("high", GroupChange(maxConnections: .set(1)))
            queue = try #require(try await fixture.store.queues(of: [low.id])[low.id])
            #expect(queue.urgent.isEmpty, "more urgent groups have all that they may have")
            #expect(queue.urgentForSlots == nil)
            // Slots are taken by whatever is more urgent, at any origin.
            try await fixture.makeGroup("far", Wanted.many(3, "f", origins: ["b"]), priority: 4)
            queue = try #require(try await fixture.store.queues(of: [low.id])[low.id])
            #expect(queue.urgent.isEmpty && queue.urgentForSlots?.names == ["far"])
        }
    }

    @Test func groupsThatMayNotRunAndThoseOfOtherSinksAreInNobodysWay() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("other", Wanted.many(2, "o"), sink: "elsewhere", priority: 9)
            try await fixture.makeGroup("closed", Wanted.many(2, "c"), priority: 8)
            let group = try await fixture.makeGroup("g", Wanted.many(3, "g"))
            try await fixture.setWindow(of: "closed", isOpen: false)
            try await fixture.capOrigins(at: 1)
            var worker = try await fixture.makeWorker(slots: 1)
            #expect(try await worker.claim(1).count == 1)
            let queue = try #require(try await fixture.store.queues(of: [group.id])[group.id])
            #expect(queue.origins.map(\.isFull) == [true] && queue.urgent.isEmpty && queue.areWorkersBusy)
        }
    }
}
