import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Silent workers of up")
struct SilenceWatchTests {
    private static let later = Timestamp(microseconds: Samples.moment.microseconds + 12_000_000)

    private func worker(_ name: String, isSilent: Bool, session: Int64 = 1) -> WorkerDocument {
        var worker = WorkerDocument(
            name: name, session: SessionID(rawValue: session), version: "1.0", startedAt: Samples.moment,
            lastSeenAt: Samples.moment)
        worker.silentSince = isSilent ? Samples.moment : nil
        return worker
    }

    @Test func eachSilenceIsToldOnceAndSoIsItsEnd() {
        var told = SilenceWatch.Told()
        func news(_ workers: [WorkerDocument]) -> [SilenceWatch.News] {
            told.news(workers, own: ["a", "b"], now: Self.later)
        }
        #expect(news([worker("a", isSilent: false), worker("b", isSilent: false)]).isEmpty)
        #expect(
            news([worker("a", isSilent: true), worker("b", isSilent: false)])
                == [.silent(name: "a", .seconds(12))])
        #expect(news([worker("a", isSilent: true)]).isEmpty)
        #expect(news([]).isEmpty, "it is gone, and that is no news of a worker that was silent")
        #expect(news([worker("a", isSilent: false)]) == [.heard(name: "a")])
        #expect(news([worker("a", isSilent: true)]) == [.silent(name: "a", .seconds(12))])
    }

    @Test func aWorkerThatWasStartedAgainIsHeardOf() {
        var told = SilenceWatch.Told()
        let sessions = [worker("a", isSilent: true), worker("a", isSilent: false, session: 2)]
        #expect(told.news(sessions, own: ["a"], now: Self.later).isEmpty)
    }

    @Test func workersOfOthersAreTheirs() {
        var told = SilenceWatch.Told()
        #expect(told.news([worker("x", isSilent: true)], own: ["a"], now: Self.later).isEmpty)
    }
}
