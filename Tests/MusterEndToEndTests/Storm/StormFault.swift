/// The faults of `docs/invariants.md` that the storm plays: what happens, and how it ends. How each one is fired is in `StormPlay`.
enum StormFault: String, CaseIterable, Sendable {
    case workerKilled, workerStopped, coordinatorKilled, coordinatorStopped
    case databaseCrashed, connectionsTerminated, primaryLost
    case commitsCut
    case partition, messagesLate, answersLost
    case latency, bandwidth, hang, reset, slices, cut
    case diskFull, writesFail, writesShort, syncsFail, unsyncedLost
    case originOut, misbehaviour
    case clocksJump
    case statementsCancelled, deadlocks, readOnly
    case oldSnapshot
    case notifyFlood, listenersLost
    case receiverFails
    case namesake
    case verbs
    case otherBuild
    case partDeleted, partTruncated
    case powerCut
    case secondInstallation
    case fewDescriptors, descriptorsUsedUp
    case idleConnections
    case olderDatabase
    case killedAgain

    /// What may happen at the same time: one fault of each kind.
    enum Kind: Sendable, Hashable, CaseIterable {
        /// To the processes of the installation and its database.
        case processes
        /// To the network, the storage, the origins, receivers, and other installations.
        case surroundings
        /// All the time, by other parts of the storm.
        case always
        /// Once, in mid-run.
        case once
        /// Not by processes on one machine.
        case never
    }

    /// A row of the table.
    struct Row: Sendable {
        /// The number in `docs/invariants.md`: 1 is F1.
        let number: Int
        let kind: Kind
        /// What happens, in a few words.
        let title: String
        /// How it ends.
        let end: String
        /// For how long it lasts, in milliseconds, before it is ended.
        var hold: ClosedRange<Int> = 0...0

        init(_ number: Int, _ kind: Kind, _ title: String, _ end: String, _ hold: ClosedRange<Int> = 0...0) {
            self.number = number
            self.kind = kind
            self.title = title
            self.end = end
            self.hold = hold
        }
    }

    /// The table. Sessions live for 3 s.
    var row: Row {
        switch self {
        case .workerKilled: Row(1, .processes, "a worker is killed", "it is started again", 0...1_500)
        case .workerStopped: Row(2, .processes, "a worker is stopped", "it goes on", 300...4_500)
        case .coordinatorKilled: Row(3, .processes, "a coordinator is killed", "it is started again", 0...2_000)
        case .coordinatorStopped: Row(4, .processes, "a coordinator is stopped", "it goes on", 300...4_000)
        case .databaseCrashed: Row(5, .processes, "PostgreSQL crashes", "it is started again", 0...1_500)
        case .connectionsTerminated: Row(5, .processes, "connections are terminated", "new ones are opened")
        case .primaryLost: Row(5, .once, "the primary is killed", "the synchronous standby is promoted", 0...1_000)
        case .commitsCut: Row(6, .surroundings, "commits or their replies are cut", "the path works again", 500...2_500)
        case .partition: Row(7, .surroundings, "a one-way partition", "it ends", 500...4_000)
        case .messagesLate: Row(7, .surroundings, "syncs and answers come late", "they come in time", 1_000...4_000)
        case .answersLost: Row(7, .surroundings, "answers to syncs are lost", "they arrive", 500...3_000)
        case .latency: Row(8, .surroundings, "a path has a latency", "it has none", 1_000...4_000)
        case .bandwidth: Row(8, .surroundings, "a path has a low bandwidth", "it is fast", 1_000...4_000)
        case .hang: Row(8, .surroundings, "a path hangs", "what it kept goes on", 500...4_000)
        case .reset: Row(8, .surroundings, "connections are reset", "new ones work")
        case .slices: Row(8, .surroundings, "bytes come in slices", "they come whole", 1_000...4_000)
        case .cut: Row(8, .surroundings, "connections end after N bytes", "they last", 1_000...4_000)
        case .diskFull: Row(9, .surroundings, "a sink is full", "there is room again", 500...3_000)
        case .writesFail: Row(9, .surroundings, "writes fail with EIO", "they succeed", 1_000...3_000)
        case .writesShort: Row(9, .surroundings, "writes are short", "they are whole", 1_000...3_000)
        case .syncsFail: Row(9, .surroundings, "fdatasync fails with EIO", "it succeeds", 1_000...3_000)
        case .unsyncedLost: Row(9, .processes, "unsynced bytes are lost", "the machine is back", 0...1_000)
        case .originOut: Row(10, .surroundings, "an origin refuses connections", "it accepts them", 500...4_000)
        case .misbehaviour: Row(10, .always, "answers of hostile origins", "the storm ends")
        case .clocksJump: Row(11, .never, "clocks jump by an hour", "")
        case .statementsCancelled: Row(12, .processes, "57014 on random statements", "they succeed")
        case .deadlocks: Row(12, .processes, "40P01 on random statements", "they succeed")
        case .readOnly: Row(12, .processes, "25006 on all statements", "the database takes writes", 200...1_500)
        case .oldSnapshot: Row(13, .processes, "an old snapshot is held", "it is let go")
        case .notifyFlood: Row(14, .processes, "a flood of NOTIFY", "it is over")
        case .listenersLost: Row(14, .processes, "NOTIFY is lost", "listeners connect again")
        case .receiverFails: Row(15, .surroundings, "a receiver fails", "it takes deliveries", 500...4_000)
        case .namesake: Row(16, .processes, "two workers have one name", "one is killed", 500...3_000)
        case .verbs: Row(17, .always, "verbs of users", "the storm ends")
        case .otherBuild: Row(18, .processes, "the database is of another build", "a migration")
        case .partDeleted: Row(19, .surroundings, "a part is deleted", "it is fetched again")
        case .partTruncated: Row(19, .surroundings, "a part is truncated", "it is fetched again")
        case .powerCut: Row(20, .processes, "everything is killed at once", "all is started again")
        case .secondInstallation: Row(21, .surroundings, "two installations on one sink", "the other one is done")
        case .fewDescriptors: Row(22, .processes, "a worker has few descriptors", "it has many", 1_000...3_000)
        case .descriptorsUsedUp: Row(22, .processes, "a coordinator has none left", "clients leave", 500...3_000)
        case .idleConnections: Row(23, .processes, "hundreds of half-open clients", "they leave", 500...3_000)
        case .olderDatabase: Row(24, .surroundings, "a database returns older", "its workers begin anew")
        case .killedAgain: Row(25, .surroundings, "get is killed again and again", "it runs to its end")
        }
    }

    /// How long a new file may take, once the fault has ended, until it is in place: twice the 60 s of I14, since a fault of the other lane may be
    /// under way, and the time in which a standby becomes the primary.
    var bound: Duration { self == .primaryLost ? .seconds(180) : .seconds(120) }

    /// The longest that a path to an origin may hold bytes back, in seconds: what an origin sends meanwhile may be lost (I16).
    static let longestHoldSeconds = 5

    /// It can't be played now, or on this machine.
    struct NotPlayed: Error {
        let reason: String
    }
}
