import MusterCore
import MusterStore
import MusterTestSupport
import Testing

/// Named readers of events, with stored positions.
@Suite struct ConsumerTests {
    @Test func positionOfAConsumerOnlyMovesForward() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeEvents(3)
            #expect(try await fixture.store.place(of: "c").position == nil)
            #expect(try await fixture.store.acknowledge(2, consumer: "c").position == 2)
            let late = try await fixture.store.acknowledge(1, consumer: "c")
            #expect(late.position == 2 && late.behind == 1)
            #expect(try await fixture.store.place(of: "c").position == 2)
            #expect(try await fixture.store.place(of: "another").position == nil)
        }
    }

    @Test func acknowledgementBeyondTheEndIsRefused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeEvents(3)
            for consumer in ["new", "c"] {
                await #expect(throws: EventRefusal.beyondEnd(last: 3)) {
                    try await fixture.store.acknowledge(4, consumer: consumer)
                }
                #expect(try await fixture.store.acknowledge(3, consumer: "c").behind == 0)
            }
            #expect(try await fixture.store.consumers(after: nil, limit: 10).map(\.name) == ["c"])
        }
    }

    /// The database has lost its last events and assigns their positions again: an old acknowledgement says nothing about the events there now.
    @Test func positionsOfAnotherLogAreRefused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.enterFence()
            try await fixture.makeEvents(3)
            let stretch = try await fixture.store.events(after: 0, limit: 2)
            #expect(try await fixture.store.acknowledge(1, of: stretch.log, consumer: "c").position == 1)
            #expect(try await fixture.store.place(of: "c") == ConsumerPlace(position: 1, log: stretch.log))
            try await fixture.restoreFiles()
            try await fixture.enterFence()
            await #expect(throws: EventRefusal.otherLog) {
                try await fixture.store.acknowledge(2, of: stretch.log, consumer: "c")
            }
            await #expect(throws: EventRefusal.otherLog) {
                try await fixture.store.events(after: 1, limit: 2, of: stretch.log)
            }
            let place = try await fixture.store.place(of: "c")
            #expect(place.position == 1 && place.log != stretch.log)
            #expect(try await fixture.store.events(after: 1, limit: 2, of: place.log).events.map(\.position) == [2, 3])
            #expect(try await fixture.store.acknowledge(2, of: place.log, consumer: "c").position == 2)
        }
    }

    @Test func acknowledgementsInAnyOrderLeaveTheLastPosition() async throws {
        try await StoreFixture.run(connections: 8) { fixture in
            try await fixture.makeEvents(40)
            var generator = SeededGenerator.forTest()
            let positions = (1...40).shuffled(using: &generator)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for position in positions {
                    group.addTask {
                        let stands = try await fixture.store.acknowledge(Int64(position), consumer: "c").position
                        #expect(stands >= position)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await fixture.store.place(of: "c").position == 40)
        }
    }

    @Test func numberOfConsumersIsBoundedUnderConcurrency() async throws {
        try await StoreFixture.run(connections: 8) { fixture in
            try await fixture.makeEvents(1)
            try await fixture.makeConsumers(Limits.consumers - 2)
            let refused = Observed(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<16 {
                    group.addTask {
                        do {
                            _ = try await fixture.store.acknowledge(1, consumer: "new\(number)")
                        } catch EventRefusal.tooManyConsumers {
                            refused.update { $0 += 1 }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await fixture.count(of: "consumers") == Limits.consumers)
            #expect(refused.value == 14)
            // Existing consumers go on.
            #expect(try await fixture.store.acknowledge(1, consumer: "c1").position == 1)
        }
    }

    @Test func listingGoesByNameAndPage() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeEvents(1)
            for name in ["c", "a", "b"] { _ = try await fixture.store.acknowledge(0, consumer: name) }
            #expect(try await fixture.store.consumers(after: nil, limit: 2).map(\.name) == ["a", "b"])
            #expect(try await fixture.store.consumers(after: "b", limit: 2).map(\.name) == ["c"])
            try await fixture.store.removeConsumer("b")
            #expect(try await fixture.store.place(of: "b").position == nil)
            await #expect(throws: EventRefusal.noSuchConsumer("b")) { try await fixture.store.removeConsumer("b") }
        }
    }

    @Test func filterSkipsUnwantedEvents() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeEvents(["night-1", "day.1", "night-2", "dayx1"])
            func read(_ groups: String?, _ types: [String] = []) async throws -> [Int64] {
                let filter = try EventFilter(groups: groups, types: types)
                let stretch = try await fixture.store.events(after: nil, limit: 10, filter: filter)
                #expect(stretch.isEnd && stretch.next == 4)
                return stretch.events.map(\.position)
            }
            #expect(try await read("night-*") == [1, 3])
            #expect(try await read("night-?") == [1, 3])
            #expect(try await read("day.1") == [2])
            #expect(try await read("*1") == [1, 2, 4])
            #expect(try await read("night") == [])
            #expect(try await read(nil, ["dev.muster.group.succeeded.v1"]) == [1, 2, 3, 4])
            #expect(try await read("*", ["dev.muster.group.failed.v1"]) == [])
        }
    }
}
