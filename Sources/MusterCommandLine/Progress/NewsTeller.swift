import MusterAPI
import MusterCore

/// Prints a line for each file as it ends, counts the failures among them, and notes what starts over.
struct NewsTeller {
    /// How many failures were printed.
    private(set) var failures: Int64 = 0
    /// The keys of tasks that started over.
    private(set) var startedOver: [String] = []
    private let tellsFinishedFiles: Bool

    /// A teller for the wanted kinds of news.
    init(_ news: GroupWatcher.News) {
        tellsFinishedFiles = if case .all = news { true } else { false }
    }

    /// Prints what some events report.
    mutating func tell(_ events: [EventDocument], _ display: ProgressDisplay) throws {
        for event in events where tellsFinishedFiles || event.knownType != .taskSucceeded {
            guard let payload = try event.payload() else { continue }
            if case .taskChanged(let facts) = payload { startedOver.append(facts.key) }
            guard let news = FileNews(payload, at: event.time) else { continue }
            switch news.outcome {
            case .failed:
                failures += 1
                try display.tell(news)
            case .finished: if tellsFinishedFiles { try display.tell(news) }
            }
        }
    }
}
