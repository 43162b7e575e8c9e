import UnixSignals

/// The signals that ask a command to end: SIGINT and SIGTERM.
struct StopSignals: Sendable {
    /// What a signal means.
    enum Wish: Sendable, Hashable {
        /// The command is to end in good order.
        case end(UnixSignal)
        /// The command is to end without waiting for that.
        case hurry(UnixSignal)
    }

    /// Turns signals into wishes.
    struct Reading {
        /// For how long a further signal counts as the first one. `timeout` sends its signal to the process and to the process group, and a
        /// terminal's Ctrl-C may come twice as well.
        static let same: Duration = .seconds(1)

        private var first: ContinuousClock.Instant?

        /// What a signal means at a moment; `nil` when it adds nothing.
        mutating func wish(_ signal: UnixSignal, at now: ContinuousClock.Instant) -> Wish? {
            guard let first else {
                first = now
                return .end(signal)
            }
            return now < first + Self.same ? nil : .hurry(signal)
        }
    }

    private let signals: UnixSignalsSequence

    /// Traps the signals. To be called before any service starts, so that no signal finds a part of the command unwatched.
    init() async {
        signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
    }

    /// Passes on every wish, until the task is cancelled.
    func watch(_ told: (Wish) async -> Void) async {
        var reading = Reading()
        for await signal in signals {
            if let wish = reading.wish(signal, at: .now) { await told(wish) }
        }
    }
}
