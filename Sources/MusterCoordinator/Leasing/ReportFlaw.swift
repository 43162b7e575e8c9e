import MusterAPI
import MusterCore
import MusterPostgres

/// The reason why a report can't be stored. Only its lease fails for that (I19).
enum ReportFlaw: Sendable, Hashable {
    /// The stated size is negative, or larger than any file may be.
    case size
    /// The durable offset is negative, or larger than any file may be.
    case offset
    /// The report lacks what its kind requires.
    case incomplete
    /// PostgreSQL refuses its data.
    case refused(SQLState)

    /// Checks a report before it is stored; `nil` if no flaw is found.
    init?(_ report: Report) {
        let file = 0...Limits.fileSize.bytes
        let isComplete =
            switch report.kind {
            case .failed: report.failure != nil
            case .shrunk: report.end != nil
            case .progress, .done, .released, .restart, .resolved, .servedAgain: true
            }
        if !isComplete {
            self = .incomplete
        } else if let durable = report.durable, !file.contains(durable.offset) {
            self = .offset
        } else if let size = report.learned?.representation.size, !file.contains(size) {
            self = .size
        } else if let size = report.finished?.size, !file.contains(size) {
            self = .size
        } else {
            return nil
        }
    }

    /// The failure that the lease ends with: an answer that can't be trusted. Another source may do better (I12).
    var kind: FailureKind { .badRange }

    /// The text about the flaw. It is the coordinator's own, so that it can always be stored, whatever the report contains.
    var reason: String {
        switch self {
        case .size: "the size that was stated is not within 0 to \(Limits.fileSize)"
        case .offset: "an offset was reported that is not within 0 to \(Limits.fileSize)"
        case .incomplete: "the report lacks what a report of its kind says"
        case .refused(let state): "the database refuses what was reported (\(state.code))"
        }
    }
}
