import Synchronization

/// The phase of the workers of `get`: the command begins before them and ends after them.
final class OwnWorkers: Sendable {
    private enum Phase {
        /// None of them has a session yet; leads to `working`, or to `ending`.
        case starting
        /// At least one of them has a session; leads to `ending`.
        case working
        /// They were told to end, for good.
        case ending
    }

    private let phase = Mutex(Phase.starting)
    private let staying: Mutex<Int>

    /// A number of workers that are about to begin.
    init(_ count: Int = 1) {
        staying = Mutex(count)
    }

    /// Whether they are about to begin, or are ending.
    var arePassing: Bool { phase.withLock { $0 != .working } }

    /// The first of them has a session, or should have one by now.
    func began() { phase.withLock { if $0 == .starting { $0 = .working } } }

    /// Records that one of them has ended. Returns whether no worker is left although this command did not tell them to end.
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
