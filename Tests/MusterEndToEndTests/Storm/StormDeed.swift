import MusterTestSupport

/// What a client of the storm does next.
enum StormDeed: String, CaseIterable, Sendable {
    case pause, resume, cancel, retry, seal, remove
    /// Makes a group, mostly again after its removal.
    case create
    /// Adds new files, and opens the group for them.
    case add
    /// Adds files again that were added before, and may have been removed meanwhile.
    case addAgain
    case reopen
    /// Changes priority and weight.
    case share
    /// Changes caps and rates.
    case cap
    /// Changes the window.
    case window
    case deadline
    /// Makes a group wait for another one.
    case chain
    case drain
    /// Changes what the fleet may do to an origin.
    case origin

    /// Its relative probability.
    private var weight: Int {
        switch self {
        case .resume, .add: 12
        case .retry, .pause: 9
        case .seal: 7
        case .cap, .cancel, .remove: 5
        case .share, .create, .reopen: 4
        case .window, .chain, .addAgain: 3
        case .deadline, .origin: 2
        case .drain: 1
        }
    }

    /// Chooses a deed at random, by the weights.
    static func choose(using random: inout SeededGenerator) -> StormDeed {
        let all = allCases.flatMap { Array(repeating: $0, count: $0.weight) }
        return all[Int.random(in: 0..<all.count, using: &random)]
    }
}
