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

    /// Workers that are about to begin.
    init() {}

    /// Whether they are about to begin or to end.
    var arePassing: Bool { phase.withLock { $0 != .working } }

    /// The first of them is heard of, or should have been by now.
    func began() { phase.withLock { if $0 == .starting { $0 = .working } } }

    /// They were told to end.
    func areEnding() { phase.withLock { $0 = .ending } }
}
