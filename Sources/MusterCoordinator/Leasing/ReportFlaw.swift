import MusterAPI
import MusterCore
import MusterPostgres

/// Why a report can't be stored. Its lease fails for that, and nothing else does (I19).
enum ReportFlaw: Sendable, Hashable {
    /// The content would be larger than any file may be, or smaller than nothing.
    case size
    /// So would what is durable of it.
    case offset
    /// A report of its kind says more than this one does.
    case incomplete
    /// PostgreSQL refuses it for what is in it.
    case refused(SQLState)

    /// What is wrong with a report before anybody tries to store it.
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

    /// What is said of it: a text of ours, which can always be stored, whatever stands in the report.
    var reason: String {
        switch self {
        case .size: "the size that was stated is not within 0 to \(Limits.fileSize)"
        case .offset: "an offset was reported that is not within 0 to \(Limits.fileSize)"
        case .incomplete: "the report lacks what a report of its kind says"
        case .refused(let state): "the database refuses what was reported (\(state.code))"
        }
    }
}
