/// The rounds of a coordinator: work that is repeated, since time alone makes it due or since a hint may be lost.
enum RoundName: String, CaseIterable, Sendable {
    /// Answers the syncs whose wait for work is over.
    case polls
    /// Ends expired sessions and takes back their leases (I14).
    case sessions
    /// Chunks whose backoff is over can be leased again.
    case backoffs
    /// Completes verbs on large groups whose request died half-way.
    case wishes
    /// Applies the deadline action of groups whose deadline has passed.
    case groupDeadlines
    /// Starts groups whose prerequisites no longer hold them.
    case chains
    /// Takes back leases of groups that may not run now.
    case recalls
    /// Makes purges ready to be leased, once no session writes the leftovers any more (I13).
    case purges
    /// Resumes tasks that waited for another task to fetch the same file.
    case repeats
    /// Fails tasks whose deadline has passed (range contract, row 33).
    case taskDeadlines
    /// Updates the measured speeds of origins.
    case originRates
    /// Moves what waits for a moment when the clock of the database has stepped back (fault F11).
    case clock
    /// Looks for work without a hint, since hints may be lost (fault F14).
    case work
    /// Asks holders to give up lanes (connections): those that a more urgent group needs, and those beyond a lowered cap.
    case preemption
    /// Finds the sessions that any coordinator has asked to shrink chunks.
    case shrinking
    /// Gives positions to events that a coordinator committed before it died.
    case events
    /// Takes back leases that are much slower than their peers (row 32).
    case slow
    /// Takes back leases without progress, even if their session is alive.
    case stalled
    /// Logs groups whose hours can't be read.
    case hours
    /// Logs worker names that several live processes have.
    case names
    /// Looks at the rows of the database for a check, and repairs what it has found (adr/0048).
    case checks
    /// Drops uploads that the client abandoned.
    case uploads
    /// Drops events that are too old.
    case retention
}

/// A row of the table of rounds: an operation and its period. The store's verbs report what the operation wakes (`Wake`).
struct Round: Sendable {
    /// The result of a run.
    enum Outcome: Sendable {
        /// No work is left until the period is over.
        case finished
        /// Work is left: the round is due again at once, after the rounds that are due already.
        case unfinished
    }

    /// Its name in the log and in the metrics.
    let name: RoundName
    /// The time from the end of a run to the start of the next run.
    let period: Duration
    /// Whether the round runs as soon as the coordinator starts. Such a round handles at once what ended with the previous
    /// coordinator, and a rare round runs even in coordinators that live only briefly. The other rounds first run a period
    /// later (see `RoundSchedule`).
    let isAtStart: Bool
    /// The operation.
    let run: @Sendable () async throws -> Outcome

    /// A round that completes its work in every run.
    init(
        _ name: RoundName, every period: Duration, isAtStart: Bool = false,
        run: @escaping @Sendable () async throws -> Void
    ) {
        self.name = name
        self.period = period
        self.isAtStart = isAtStart
        self.run = {
            try await run()
            return .finished
        }
    }

    /// A round that may leave work for its next run.
    init(
        _ name: RoundName, everyOrSooner period: Duration, isAtStart: Bool = false,
        run: @escaping @Sendable () async throws -> Outcome
    ) {
        self.name = name
        self.period = period
        self.isAtStart = isAtStart
        self.run = run
    }
}
