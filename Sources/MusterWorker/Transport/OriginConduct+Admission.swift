import MusterCore
import MusterSystem
import Synchronization

/// When a request may be made: many at once only if the origin does not refuse all of them for that.
extension OriginConduct {
    /// Waits until a request may be made, and notes it. As long as nothing comes from the origin, and after it has refused a request that was made beside
    /// another, requests are made one after the other: the origin may not allow many at once, and may refuse all of them together, which would say nothing
    /// about their files. Silence is no refusal: each request that has been silent for a while lets one more be made beside the next, so that files that are
    /// served come soon after a few that are not. `nil` when the work is not wanted any more.
    func admit(_ origin: String, for control: LeaseControl) async -> Visit? {
        var awaited: (number: Int, until: SteadyClock.Instant)?
        while true {
            let rings = bell.rings
            let (unanswered, patience): (Int, Duration)
            switch askIfOpen(origin) {
            case .asked(let visit): return visit
            case .waits(let number, let rest): (unanswered, patience) = (number, rest)
            }
            // The time begins anew with each answer.
            if awaited?.number != unanswered { awaited = (unanswered, SteadyClock.now + patience) }
            let rest = awaited.map { $0.until - SteadyClock.now } ?? .zero
            guard rest > .zero else { return ask(origin) }
            guard await control.wait(at: bell, since: rings, limit: rest) else { return nil }
        }
    }

    private enum Admission {
        case asked(Visit)
        /// For the answer to the request of this number, for this long at most.
        case waits(Int, Duration)
    }

    private func askIfOpen(_ origin: String) -> Admission {
        let moment = now()
        return state.withLock { state in
            // A request that has been silent for longer is not waited for: each turn of a file that is refused beside it would wait anew.
            let latest = moment - Self.silentTime.wholeNanoseconds
            guard !state.isOpen(origin, at: moment), let unanswered = state.asking[origin]?.unanswered,
                case let recent = unanswered.filter({ $0.value > latest }),
                recent.count > unanswered.count - recent.count,
                let oldest = recent.min(by: { $0.key < $1.key })
            else { return .asked(state.ask(origin, at: moment)) }
            return .waits(oldest.key, .nanoseconds(oldest.value - latest))
        }
    }

    /// Notes that the origin refused a request that was made beside another one, which may be the reason.
    func refusesTogether(_ origin: String) {
        let moment = now()
        state.withLock { $0.refusing.note((), of: origin, until: moment + Self.servingMemory) }
    }

    /// Whether the origin was seen to serve overlapping requests, so that its refusals have another reason.
    func servesTogether(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.together.value(of: origin, at: moment) } != nil
    }

    /// Whether the origin has answered a request that was made as late as this one, in a quarter of the time that this one has waited or less. That time
    /// is ten seconds at least.
    func answersOthers(than visit: Visit, of origin: String) -> Bool {
        let moment = now()
        guard let last = state.withLock({ $0.answered.value(of: origin, at: moment) }) else { return false }
        let time = moment - visit.begin
        return time >= Self.timeToBeOvertaken && last.begin >= visit.begin - Self.togetherTime && last.time <= time / 4
    }

    /// Whether a silent request may be made once more now: one at a time of each origin, since what it shows holds for the others.
    func mayRepeat(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { state in
            guard state.repeating.value(of: origin, at: moment) == nil else { return false }
            state.repeating.note((), of: origin, until: moment + Self.timeToBeOvertaken)
            return true
        }
    }

    /// How long a request is silent before others can overtake it, in nanoseconds.
    static let timeToBeOvertaken: Int64 = 10_000_000_000

    /// Whether many requests wait for the origin's answer.
    func leavesMany(_ origin: String) -> Bool {
        state.withLock { $0.asking[origin]?.unanswered.count ?? 0 } >= Self.many
    }

    /// So many requests that wait are more than a line that is used for one after the other.
    private static let many = 3

    /// Waits until no job asks anything of the origin, for some seconds at most: the next request is then made alone.
    func becomesIdle(_ origin: String, for control: LeaseControl) async {
        let deadline = SteadyClock.now + Self.aloneTime
        while true {
            let rings = bell.rings
            let rest = deadline - .now
            guard !isIdle(origin), rest > .zero, await control.wait(at: bell, since: rings, limit: rest) else { return }
        }
    }

    /// How long a request that is to be made alone waits for those before it.
    private static let aloneTime: Duration = .seconds(5)
    /// After this time, a request without an answer counts as silent.
    private static let silentTime: Duration = .seconds(2)
}
