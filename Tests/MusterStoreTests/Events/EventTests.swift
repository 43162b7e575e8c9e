import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// The event log (I9).
@Suite struct EventTests {
    @Test func positionsAreAssignedBySequencing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", isSealed: true)
            #expect(try await fixture.store.events(after: 0, limit: 10, group: nil).events.isEmpty)
            #expect(try await fixture.store.sequenceEvents() == 1)
            #expect(try await fixture.store.sequenceEvents() == 0)
            try await fixture.check()
            let stretch = try await fixture.store.events(after: 0, limit: 10, group: "g")
            let events = stretch.events
            #expect(events.map(\.position) == [1] && stretch.next == 1)
            #expect(events.first?.type == "dev.muster.group.succeeded.v1" && events.first?.subject == "groups/g")
            // The data are the same bytes at every read.
            #expect(
                try await fixture.store.events(after: 0, limit: 10, group: nil).events.map(\.data) == events.map(\.data)
            )
            #expect(try await fixture.store.events(after: 1, limit: 10).events.isEmpty)
            await #expect(throws: EventRefusal.otherLog) {
                try await fixture.store.events(after: 2, limit: 10, of: stretch.log)
            }
            await #expect(throws: EventRefusal.beyondEnd(last: 1)) {
                try await fixture.store.events(after: 2, limit: 10)
            }
            let filtered = try await fixture.store.events(after: 0, limit: 10, group: "none")
            #expect(filtered.events.isEmpty && filtered.next == 1)
        }
    }

    @Test func readerMissesNoEventUnderConcurrentWrites() async throws {
        try await StoreFixture.run(connections: 12) { fixture in
            let writers = 8
            let each = 25
            let running = Observed(writers)
            let seen = try await withThrowingTaskGroup(of: [EventRecord].self) { group in
                for writer in 0..<writers {
                    group.addTask {
                        for number in 0..<each {
                            try await fixture.makeGroup("g\(writer)-\(number)", isSealed: true)
                        }
                        running.update { $0 -= 1 }
                        return []
                    }
                }
                for _ in 0..<2 {
                    group.addTask {
                        while running.value > 0 { _ = try await fixture.store.sequenceEvents(limit: 7) }
                        while try await fixture.store.sequenceEvents(limit: 7) > 0 {}
                        return []
                    }
                }
                group.addTask {
                    var seen: [EventRecord] = []
                    while seen.count < writers * each {
                        let stretch = try await fixture.store.events(after: Int64(seen.count), limit: 10)
                        seen += stretch.events
                        try #require(stretch.next == Int64(seen.count))
                    }
                    return seen
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(seen.map(\.position) == (1...Int64(writers * each)).map(\.self))
            #expect(Set(seen.map(\.id)).count == writers * each)
            try await fixture.check()
        }
    }

    @Test func aFactThatIsWrittenTwiceIsLoggedOnce() async throws {
        try await StoreFixture.run { fixture in
            let again: SQL = "SELECT write_event('grp-7-1-failed', 'dev.muster.group.failed.v1', 'g', '{}')"
            for _ in 0..<2 { try await fixture.run(again) }
            try await fixture.makeGroup("h", isSealed: true)
            #expect(try await fixture.store.sequenceEvents() == 3)
            try await fixture.run(again)
            let events = try await fixture.events()
            #expect(events.map(\.subject) == ["groups/g", "groups/h"] && events.map(\.position) == [1, 2])
            #expect(try await fixture.store.events(after: nil, limit: 10).next == 2)
        }
    }

    @Test func eventIsRolledBackWithItsTransaction() async throws {
        try await StoreFixture.run { fixture in
            // A refused addition rolls the whole transaction back, with its events.
            await #expect(throws: Store.Refusal.self) {
                try await fixture.makeGroup("g", [Wanted("a", path: "p"), Wanted("b", path: "p")], isSealed: true)
            }
            #expect(try await fixture.events().isEmpty)
            try await fixture.check()
        }
    }
}
