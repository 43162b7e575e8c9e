import Synchronization

/// Where the workers of `get` are: it begins without them, and they end before it does.
final class OwnWorkers: Sendable {
    private enum Phase {
        /// None of them has a session yet; leads to `working`, or to `ending`.
        case starting
        /// They can be heard of; leads to `ending`.
        case working
        /// They were told to end, for good.
        case ending
    }

    private let phase = Mutex(Phase.starting)
    private let staying: Mutex<Int>

    /// So many workers that are about to begin.
    init(_ count: Int = 1) {
        staying = Mutex(count)
    }

    /// Whether they are about to begin or to end.
    var arePassing: Bool { phase.withLock { $0 != .working } }

    /// The first of them is heard of, or should have been by now.
    func began() { phase.withLock { if $0 == .starting { $0 = .working } } }

    /// One of them has come to its end. Returns whether nobody is left to go on, though they were not told to end by this command.
    func leave() -> Bool {
        let isLast = staying.withLock { staying in
            staying -= 1
            return staying == 0
        }
        return isLast && phase.withLock { $0 != .ending }
    }

    /// They were told to end.
    func areEnding() { phase.withLock { $0 = .ending } }
}
