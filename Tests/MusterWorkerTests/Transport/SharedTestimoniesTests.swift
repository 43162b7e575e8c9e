import MusterCore
import Testing

@testable import MusterWorker

/// A testimony that many jobs wait for is asked for once.
@Suite(.timeLimit(.minutes(1))) struct SharedTestimoniesTests {
    private let shared = SharedTestimonies()
    /// Rung when the request is under way.
    private let begun = Bell()
    /// Rung to have the request answered.
    private let answer = Bell()

    private func ask(after moment: Int, for control: LeaseControl = LeaseControl()) async -> Examination.Testimony? {
        await shared.testimony(of: "403 http://origin/a", after: moment, for: control) {
            begun.ring()
            await answer.wait(since: 0)
            return .served
        }
    }

    @Test func waitingJobsGetTheTestimonyOfTheFirst() async {
        let moment = shared.moment
        async let first = ask(after: moment)
        await begun.wait(since: 0)
        async let (second, third) = (ask(after: moment), ask(after: moment))
        answer.ring()
        #expect(await [first, second, third] == [.served, .served, .served])
        #expect(begun.rings == 1)
    }

    @Test func jobWhoseWorkIsNoLongerWantedStopsWaiting() async {
        let moment = shared.moment
        async let first = ask(after: moment)
        await begun.wait(since: 0)
        let control = LeaseControl()
        async let second = ask(after: moment, for: control)
        control.ask(.release)
        #expect(await second == nil)
        answer.ring()
        #expect(await first == .served)
    }
}
