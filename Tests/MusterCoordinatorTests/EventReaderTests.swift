import MusterCore
import MusterStore
import Synchronization
import Testing

@testable import MusterCoordinator

/// Reading a log that is longer than one answer has time for.
@Suite struct EventReaderTests {
    private static let length: Int64 = 2 * Limits.eventPositions + 1

    /// A reader whose clock goes on by `step` whenever it is asked.
    private static func reader(_ log: LongLog, step: Duration) -> EventReader {
        let time = Mutex<Int64>(0)
        let clock = MonotonicClock {
            time.withLock { time in
                time += step.milliseconds * 1_000_000
                return time
            }
        }
        return EventReader(store: log.store, bell: Bell(), clock: clock, longPoll: .seconds(20))
    }

    private static func question(after: Int64?) throws -> EventReader.Question {
        EventReader.Question(after: after, limit: 10, filter: try EventFilter(groups: nil, types: [LongLog.lastType]))
    }

    @Test func answerWithoutTheTimeForTheWholeLogTellsHowFarItCame() async throws {
        try await LongLog.with { log in
            try await log.fill(Self.length)
            let reader = Self.reader(log, step: Limits.eventSearch)
            var places: [Int64] = []
            var found: [Int64] = []
            while found.isEmpty {
                let stretch = try await reader.read(try Self.question(after: places.last), wait: .seconds(20))
                try #require(stretch.next > places.last ?? 0)
                places.append(stretch.next)
                found = stretch.events.map(\.position)
            }
            #expect(places == [Limits.eventPositions, 2 * Limits.eventPositions, Self.length])
            #expect(found == [Self.length])
        }
    }

    @Test func answerThatHasTheTimeLooksThroughTheWholeLog() async throws {
        try await LongLog.with { log in
            try await log.fill(Self.length)
            let stretch = try await Self.reader(log, step: .zero).read(try Self.question(after: nil), wait: .zero)
            #expect(stretch.events.map(\.position) == [Self.length] && stretch.isEnd)
        }
    }
}
