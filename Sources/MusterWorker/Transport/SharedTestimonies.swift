import MusterCore
import Synchronization

/// The testimonies of witnesses, shared by all jobs that wait for them: many files are refused at the same time (adr/0033).
final class SharedTestimonies: Sendable {
    private struct State {
        /// How many requests were begun.
        var begun = 0
        var underWay: Set<String> = []
        /// The last testimony for each key, and the number of its request.
        var told = Remembered<(number: Int, testimony: Examination.Testimony)>()
    }

    private let state = Mutex(State())
    /// Rung when a request is over.
    private let bell = Bell()

    /// The present moment, to be given when a testimony is asked for.
    var moment: Int { state.withLock { $0.begun } }

    /// The testimony of a request that was begun after `moment`. If there is none, `ask` makes one, once a request under way is over. `nil` if the work of
    /// the job is not wanted any more.
    func testimony(
        of key: String, after moment: Int, for control: LeaseControl, ask: () async -> Examination.Testimony
    ) async -> Examination.Testimony? {
        while control.wish == .work {
            let rings = bell.rings
            let (known, number) = begin(key, after: moment)
            if let known { return known }
            if let number {
                let testimony = await ask()
                state.withLock { state in
                    state.underWay.remove(key)
                    // A request without a result is not shared: the next job may get one.
                    if testimony != .nothing { state.told.note((number, testimony), of: key) }
                }
                bell.ring()
                return testimony
            }
            guard await control.wait(at: bell, since: rings) else { return nil }
        }
        return nil
    }

    private func begin(_ key: String, after moment: Int) -> (known: Examination.Testimony?, number: Int?) {
        state.withLock { state in
            if let told = state.told.value(of: key, at: 0), told.number > moment { return (told.testimony, nil) }
            guard state.underWay.insert(key).inserted else { return (nil, nil) }
            state.begun += 1
            return (nil, state.begun)
        }
    }
}
