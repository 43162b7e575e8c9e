import MusterCore

/// Chooses the next round: a state machine without a clock. Lanes take rounds from it and return them.
///
/// Times are nanoseconds of the coordinator's monotonic clock. The round with the earliest due time goes first, so that no
/// round starves.
struct RoundSchedule {
    /// A round that a lane has taken, and when it may begin.
    struct Turn: Sendable {
        /// The index of the round in the table.
        let row: Int
        /// The due time, which may have passed.
        let due: Int64
    }

    /// How a run ended.
    enum Ending: Sendable {
        /// The run completed its work.
        case finished
        /// The run left work.
        case unfinished
        /// The run threw an error.
        case failed
    }

    /// A message about a round that fails, or works again.
    enum Note: Sendable, Hashable {
        /// The round has begun to fail, or still fails a minute after the last message. `runs` counts the failures in a row.
        case failing(runs: Int)
        /// The round works again, after this many failures in a row.
        case recovered(runs: Int)
    }

    private struct Row {
        let period: Int64
        var due: Int64
        var isTaken = false
        var failures = 0
        var toldAt: Int64?
    }

    /// The latest first run of a round, in nanoseconds after the start.
    private static let latestStart = Int64(1_000_000_000)
    /// The interval between messages about a failing round, in nanoseconds.
    static let telling = Int64(60_000_000_000)

    private var rows: [Row]

    /// A schedule of rounds with these periods. The rounds of `atStart` are due at once. The others are due a period later,
    /// but at most a second later: the delay leaves a starting process time for its other work.
    init(periods: [Duration], atStart: Set<Int>, now: Int64) {
        rows = periods.enumerated().map { row, period in
            let period = period.milliseconds * 1_000_000
            return Row(period: period, due: atStart.contains(row) ? now : now + min(period, Self.latestStart))
        }
    }

    /// Takes the round with the earliest due time; `nil` when the other lanes have taken all rounds.
    mutating func take() -> Turn? {
        guard let row = rows.indices.filter({ !rows[$0].isTaken }).min(by: { rows[$0].due < rows[$1].due }) else {
            return nil
        }
        rows[row].isTaken = true
        return Turn(row: row, due: rows[row].due)
    }

    /// Ends a run. Returns the message to log, if any.
    ///
    /// A failed round waits for as long as its run took, if that is longer than its period. So a round that hangs until its
    /// statement times out occupies a lane for at most half of the time.
    mutating func end(_ row: Int, _ ending: Ending, began: Int64, now: Int64) -> Note? {
        rows[row].isTaken = false
        switch ending {
        case .finished, .unfinished:
            if case .finished = ending { rows[row].due = now + rows[row].period } else { rows[row].due = now }
            defer {
                rows[row].failures = 0
                rows[row].toldAt = nil
            }
            return rows[row].failures > 0 ? .recovered(runs: rows[row].failures) : nil
        case .failed:
            rows[row].due = now + max(rows[row].period, now - began)
            rows[row].failures += 1
            if let toldAt = rows[row].toldAt, now - toldAt < Self.telling { return nil }
            rows[row].toldAt = now
            return .failing(runs: rows[row].failures)
        }
    }
}
