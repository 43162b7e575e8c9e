import Testing

@testable import MusterCoordinator

@Suite("The schedule of rounds")
struct RoundScheduleTests {
    private static let second: Int64 = 1_000_000_000

    @Test func onlySomeRoundsComeAtTheStartAndTheOthersWithinASecond() {
        var schedule = RoundSchedule(
            periods: [.milliseconds(250), .seconds(60), .seconds(10)], atStart: [1], now: 7)
        let turns = (0..<3).compactMap { _ in schedule.take() }
        #expect(turns.map(\.row) == [1, 0, 2])
        #expect(turns.map(\.due) == [7, 7 + Self.second / 4, 7 + Self.second])
    }

    @Test func theRoundThatIsDueFirstGoesFirst() {
        var schedule = RoundSchedule(periods: [.seconds(10), .seconds(1)], atStart: [0, 1], now: 0)
        #expect(schedule.take()?.row == 0 && schedule.take()?.row == 1)
        #expect(schedule.take() == nil, "the other lanes have all of them")
        #expect(
            schedule.end(0, .finished, began: 0, now: 5) == nil && schedule.end(1, .finished, began: 0, now: 7) == nil)
        let next = schedule.take()
        #expect(next?.row == 1 && next?.due == 7 + Self.second)
        // The other round keeps the due time from its own end.
        #expect(schedule.take()?.due == 5 + 10 * Self.second)
    }

    @Test func unfinishedRoundComesAfterThoseThatAreDue() {
        var schedule = RoundSchedule(periods: [.seconds(60), .seconds(1)], atStart: [0, 1], now: 0)
        _ = schedule.take()
        _ = schedule.end(0, .unfinished, began: 0, now: 3)
        #expect(schedule.take()?.row == 1)
        #expect(schedule.take()?.due == 3)
    }

    @Test func roundThatFailsWaitsForAsLongAsItTook() {
        var schedule = RoundSchedule(periods: [.milliseconds(250)], atStart: [0], now: 0)
        _ = schedule.take()
        _ = schedule.end(0, .failed, began: 0, now: 15 * Self.second)
        #expect(schedule.take()?.due == 30 * Self.second)
        _ = schedule.end(0, .failed, began: 30 * Self.second, now: 30 * Self.second)
        #expect(schedule.take()?.due == 30 * Self.second + Self.second / 4)
    }

    @Test func failuresAreToldAtTheBeginningOnceAMinuteAndAtTheEnd() {
        var schedule = RoundSchedule(periods: [.seconds(1)], atStart: [0], now: 0)
        var told: [Int64: RoundSchedule.Note] = [:]
        for second in Int64(0)...130 {
            _ = schedule.take()
            let now = second * Self.second
            let ending: RoundSchedule.Ending = second == 130 ? .finished : .failed
            told[second] = schedule.end(0, ending, began: now, now: now)
        }
        #expect(
            told == [
                0: .failing(runs: 1), 60: .failing(runs: 61), 120: .failing(runs: 121), 130: .recovered(runs: 130),
            ])
        _ = schedule.take()
        #expect(schedule.end(0, .finished, began: 0, now: 0) == nil)
        _ = schedule.take()
        #expect(schedule.end(0, .failed, began: 0, now: 0) == .failing(runs: 1), "the next time is told at once")
    }
}
