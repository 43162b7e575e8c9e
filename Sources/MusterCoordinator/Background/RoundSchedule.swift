import MusterCore

/// Which round comes next, as a state machine without a clock: the lanes take rounds from it and bring them back.
///
/// Times are nanoseconds of the coordinator's monotonic clock. The round that is due first goes first, so that none of them starves.
struct RoundSchedule {
    /// A round that a lane has taken, and when it may begin.
    struct Turn: Sendable {
        /// Its place in the table.
        let row: Int
        /// When it is due; may have passed.
        let due: Int64
    }

    /// What became of a run.
    enum Ending: Sendable {
        /// It did what it had to do.
        case finished
        /// It did some of it.
        case unfinished
        /// It threw.
        case failed
    }

    /// What has to be told of a round that fails, or works again.
    enum Note: Sendable, Hashable {
        /// It has begun to fail, or still does a minute later: so many runs in a row.
        case failing(runs: Int)
        /// It works again.
        case recovered(runs: Int)
    }

    private struct Row {
        let period: Int64
        var due: Int64
        var isTaken = false
        var failures = 0
        var toldAt: Int64?
    }

    /// When all rounds have begun.
    private static let latestStart = Int64(1_000_000_000)
    /// How often one that fails is told of.
    static let telling = Int64(60_000_000_000)

    private var rows: [Row]

    /// A schedule of rounds with these periods. Those of `atStart` are due at once, the others a period later, and after a second at the
    /// latest: a process that has just started has other things to do.
    init(periods: [Duration], atStart: Set<Int>, now: Int64) {
        rows = periods.enumerated().map { row, period in
            let period = period.milliseconds * 1_000_000
            return Row(period: period, due: atStart.contains(row) ? now : now + min(period, Self.latestStart))
        }
    }

    /// Takes the round that is due first; `nil` when the other lanes have all of them.
    mutating func take() -> Turn? {
        guard let row = rows.indices.filter({ !rows[$0].isTaken }).min(by: { rows[$0].due < rows[$1].due }) else {
            return nil
        }
        rows[row].isTaken = true
        return Turn(row: row, due: rows[row].due)
    }

    /// A run is over. Returns what is to be told of it.
    ///
    /// One that failed waits for as long as it took, if that is longer than its period: one that hangs until the database gives up
    /// has a lane for half of the time at the most.
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
