import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator
@testable import MusterStore

/// One read of the log serves all followers that wait at the same position.
@Suite struct EventPagesTests {
    private static let question = EventReader.Question(after: 7, limit: 10, filter: .all)
    private static let nothing = EventStretch(events: [], next: 7, isEnd: true, log: "l")

    @Test func aThousandFollowersOfOnePlaceShareOneRead() async throws {
        let bell = Bell()
        let reads = Observed(0)
        let pages = EventPages(bell: bell) { _ in
            reads.update { $0 += 1 }
            return Self.nothing
        }
        for ring in 1...50 {
            try await withThrowingTaskGroup(of: EventPage.self) { followers in
                for _ in 0..<1_000 { followers.addTask { try await pages.next(Self.question, seen: 0) } }
                let all = try await followers.reduce(into: []) { $0.append($1) }
                // All followers get the same object, so that they share its encoded bytes as well.
                #expect(all.count == 1_000 && all.allSatisfy { $0 === all[0] })
            }
            #expect(reads.value == ring)
            bell.ring()
        }
    }

    /// A hint of another coordinator may be lost (fault F14).
    @Test func aFollowerThatComesAgainIsGivenALaterRead() async throws {
        let pages = EventPages(bell: Bell()) { _ in Self.nothing }
        let first = try await pages.next(Self.question, seen: 0)
        let second = try await pages.next(Self.question, seen: first.number)
        #expect(second.number == first.number + 1)
        #expect(try await pages.next(Self.question, seen: first.number) === second)
    }

    @Test func requestForThePresentStateGetsAReadThatBeganAfterwards() async throws {
        let begun = Observed(0)
        let isOver = Observed(false)
        let pages = EventPages(bell: Bell()) { _ in
            begun.update { $0 += 1 }
            try await isOver.wait(for: "the end of the read", until: { $0 })
            return Self.nothing
        }
        async let first = pages.page(Self.question)
        try await begun.wait(for: "the first read", until: { $0 == 1 })
        async let second = pages.page(Self.question)
        isOver.update { $0 = true }
        let numbers = (try await first.number, try await second.number)
        #expect(numbers == (1, 2))
        #expect(try await pages.page(Self.question).number == 3)
    }

    @Test func aFailedReadIsNoLaterAnswer() async throws {
        let fails = Observed(true)
        let pages = EventPages(bell: Bell()) { _ in
            if fails.value { throw EventRefusal.beyondEnd(last: 3) }
            return Self.nothing
        }
        await #expect(throws: EventRefusal.self) { try await pages.next(Self.question, seen: 0) }
        fails.update { $0 = false }
        #expect(try await pages.next(Self.question, seen: 0).stretch == Self.nothing)
    }
}
