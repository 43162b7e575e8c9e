import HTTPTypes
import Hummingbird
import MusterCore
import MusterStore
import MusterSystem
import NIOCore
import Synchronization
import Testing

@testable import MusterCoordinator

/// Reading a log that is longer than one answer has time for.
@Suite struct EventReaderTests {
    private static let length: Int64 = 2 * Limits.eventPositions + 1

    /// A reader whose clock advances by `step` at each reading of it.
    private static func reader(_ log: LongLog, step: Duration) -> EventReader {
        let time = Mutex<Int64>(0)
        let clock = MonotonicClock {
            time.withLock { time in
                time += step.milliseconds * 1_000_000
                return time
            }
        }
        return EventReader(
            store: log.store, bell: Bell(), clock: clock, longPoll: .seconds(20),
            share: ReadersShare(ReaderLimits(connections: 8)))
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
                let stretch = try await reader.read(try Self.question(after: places.last), wait: .seconds(20)).stretch
                try #require(stretch.next > places.last ?? 0)
                places.append(stretch.next)
                found = stretch.events.map(\.position)
            }
            #expect(places == [Limits.eventPositions, 2 * Limits.eventPositions, Self.length])
            #expect(found == [Self.length])
        }
    }

    /// Otherwise a client that resumes from the last event that passed its filter would be told that the events after it are gone.
    @Test func streamTellsHowFarItCameWhereNothingPasses() async throws {
        try await LongLog.with { log in
            try await log.fill(Self.length)
            let stream = EventStream(
                reader: Self.reader(log, step: Limits.eventSearch), question: try Self.question(after: 0))
            let written = Mutex("")
            var writer: any ResponseBodyWriter = CutWriter { text in
                written.withLock { written in
                    written += text
                    return !written.contains("data: ")
                }
            }
            await #expect(throws: CutWriter.Cut.self) { try await stream.write(to: &writer) }
            #expect(
                written.withLock(\.self).hasPrefix(
                    """
                    : the log follows

                    : nothing new
                    id: \(Limits.eventPositions)

                    : nothing new
                    id: \(2 * Limits.eventPositions)

                    id: \(Self.length)
                    event: \(LongLog.lastType)
                    data: {
                    """))
        }
    }

    @Test func answerThatHasTheTimeLooksThroughTheWholeLog() async throws {
        try await LongLog.with { log in
            try await log.fill(Self.length)
            let stretch = try await Self.reader(log, step: .zero).read(try Self.question(after: nil), wait: .zero)
                .stretch
            #expect(stretch.events.map(\.position) == [Self.length] && stretch.isEnd)
        }
    }
}

/// A reader of a stream that goes away once it has what it wants.
private struct CutWriter: ResponseBodyWriter {
    struct Cut: Error {}

    /// Takes a piece of the stream; returns false when that is enough.
    let take: @Sendable (String) -> Bool

    mutating func write(_ buffer: ByteBuffer) async throws {
        guard take(String(buffer: buffer)) else { throw Cut() }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
