import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore
import MusterSystem
import NIOCore
import ServiceLifecycle

/// Reads the log for clients that pull events, within the readers' share of the coordinator.
struct EventReader: Sendable {
    let bell: Bell
    let clock: MonotonicClock
    /// The longest wait of a request.
    let longPoll: Duration
    /// The share of the coordinator that all readers have together.
    let share: ReadersShare
    let pages: EventPages

    /// What a request asks of the log.
    struct Question: Sendable, Hashable {
        /// The last position that the reader knows; `nil` begins with the oldest event kept.
        var after: Int64?
        /// The maximum number of events in the answer.
        var limit: Int32
        /// The group whose events are wanted; `nil` for all groups.
        var group: String?
        /// The filter that the events must pass.
        var filter: EventFilter
        /// The log that the position belongs to, if known.
        var log: String?
    }

    init(store: Store, bell: Bell, clock: MonotonicClock, longPoll: Duration, share: ReadersShare) {
        self.bell = bell
        self.clock = clock
        self.longPoll = longPoll
        self.share = share
        pages = EventPages(bell: bell) { question in
            try await share.enter {
                try await store.events(
                    after: question.after, limit: question.limit, group: question.group, filter: question.filter,
                    of: question.log)
            }
        }
    }

    /// Reads what the log holds now, with one question to the database.
    func look(_ question: Question) async throws -> EventPage {
        try await Self.telling { try await pages.page(question) }
    }

    private static func telling(_ body: () async throws -> EventPage) async throws -> EventPage {
        do {
            return try await body()
        } catch EventRefusal.beyondEnd(let last) {
            throw Problem(.conflict, "the log ends at \(last): that position belongs to another log")
        }
    }

    /// Reads, and waits up to `wait` for an event.
    ///
    /// A filter may skip more events than one request has time for. Then the answer has no events, and only says how far
    /// the log was searched.
    func read(_ question: Question, wait: Duration) async throws -> EventPage {
        // A reader that does not wait gets what the log holds now.
        guard wait > .zero else { return try await search(question, wait: wait) { try await look($0) } }
        return try await pages.following {
            var last = (number: 0, after: question.after)
            return try await search(question, wait: wait) { question in
                let page = try await Self.telling {
                    try await pages.next(question, seen: question.after == last.after ? last.number : 0)
                }
                last = (page.number, question.after)
                return page
            }
        }
    }

    private func search(
        _ question: Question, wait: Duration, _ look: (Question) async throws -> EventPage
    ) async throws -> EventPage {
        let start = clock.now()
        let end = start + wait.milliseconds * 1_000_000
        let searchEnd = start + Limits.eventSearch.milliseconds * 1_000_000
        var question = question
        while true {
            let rings = bell.rings
            let page = try await look(question)
            let stretch = page.stretch
            guard stretch.events.isEmpty, !Task.isCancelled, !Task.isShuttingDownGracefully else { return page }
            question.after = stretch.next
            guard stretch.isEnd else {
                guard clock.now() < searchEnd else { return page }
                continue
            }
            let left = end - clock.now()
            guard left > 0 else { return page }
            // A hint of another coordinator may be lost (fault F14); a second later the log is read anyway.
            await bell.wait(since: rings, limit: min(.seconds(1), .nanoseconds(left)), clock: .continuous)
        }
    }
}

extension EventReader.Question {
    /// The question in the query of a request.
    init(_ request: Request, after: Int64?, of log: String? = nil) throws(Problem) {
        let group = try request.query("group")
        if let group, !NameRule.accepts(group) { throw Problem(.invalidRequest, "group \(NameRule.explanation)") }
        let types = try request.query("types")?.split(separator: ",").map(String.init) ?? []
        let filter: EventFilter
        do {
            filter = try EventFilter(groups: try request.query("groups"), types: types)
        } catch let refusal as EventFilter.Refusal {
            throw Problem(.invalidRequest, "\(refusal.subject) \(refusal)")
        } catch {
            throw Problem(error)
        }
        self.init(after: after, limit: try request.pageLimit(), group: group, filter: filter, log: log)
    }
}

extension EventFilter.Refusal {
    /// The name of the refused query parameter.
    var subject: String {
        switch self {
        case .groups: "groups"
        case .types: "types"
        }
    }
}

extension Answer {
    /// A stretch of the log.
    static func events(_ page: EventPage) throws -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: try page.document()))
    }
}
