import MusterCore
import Synchronization

/// What files of origins say that were asked for once more, for all that wait to know it: many files are refused at the same time (adr/0033).
final class SharedTestimonies: Sendable {
    private struct State {
        /// How many requests were begun.
        var begun = 0
        var underWay: Set<String> = []
        /// What the last one of each key told, and which one it was.
        var told = Remembered<(number: Int, testimony: Examination.Testimony)>()
    }

    private let state = Mutex(State())
    /// Rung when a request is over.
    private let bell = Bell()

    /// This moment, to be named when a testimony is asked for.
    var moment: Int { state.withLock { $0.begun } }

    /// What a request told that was begun after a moment; where there is none, `ask` makes it, once what is under way is over. `nil` if its job's work is wanted no more.
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
                    // What could not be told to one may be told to the next.
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
