/// The rounds of a coordinator: what has to be done again and again, since time alone makes it due or since a hint may be lost.
enum RoundName: String, CaseIterable, Sendable {
    /// Syncs that have waited for work long enough are answered.
    case polls
    /// Sessions that have expired end, and what they held goes back (I14).
    case sessions
    /// Chunks whose backoff is over can be leased again.
    case backoffs
    /// Verbs on large groups whose request died are brought to their end.
    case wishes
    /// What is to follow when the time of a group is over.
    case groupDeadlines
    /// Groups begin that waited for others.
    case chains
    /// Leases of groups that may not run now are taken back.
    case recalls
    /// Leftovers that nobody writes any more can be deleted (I13).
    case purges
    /// Tasks that waited for the file of another one go on.
    case repeats
    /// Tasks whose deadline has passed fail (range contract, row 33).
    case taskDeadlines
    /// The speeds of origins.
    case originRates
    /// Work is looked for although nobody said that there is any: hints may be lost (fault F14).
    case work
    /// Holders are asked to give up connections for what is more urgent, and those beyond a smaller cap.
    case preemption
    /// Finds sessions that are asked to shrink chunks, by any coordinator.
    case shrinking
    /// Events get their positions that a coordinator committed which has died since.
    case events
    /// Leases that are much slower than their peers are taken back (row 32).
    case slow
    /// Leases without progress are taken back, whatever their session says.
    case stalled
    /// Groups whose hours can't be read are named in the log.
    case hours
    /// Uploads that nobody came back for are dropped.
    case uploads
    /// Events that are too old are dropped.
    case retention
}

/// A row of the table of rounds: what is done, and how often. The store's verbs say what it wakes (`Wake`).
struct Round: Sendable {
    /// What a run has come to.
    enum Outcome: Sendable {
        /// There is nothing more to do until the period is over.
        case finished
        /// There is more: it comes again at once, after those that are due.
        case unfinished
    }

    /// Its name in the log and in the metrics.
    let name: RoundName
    /// How long after its end it comes again.
    let period: Duration
    /// Whether it comes as soon as the coordinator starts: what has come to an end with the last one is looked after at once, and what
    /// comes seldom is not left out by coordinators that live for a moment. The others come a period later.
    let isAtStart: Bool
    /// What it does.
    let run: @Sendable () async throws -> Outcome

    /// A round that does all that it has to do.
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

    /// A round that may leave something for its next run.
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
