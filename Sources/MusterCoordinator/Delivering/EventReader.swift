import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore
import NIOCore
import ServiceLifecycle

/// Reads the log for those who pull.
struct EventReader: Sendable {
    let store: Store
    let bell: Bell
    let clock: MonotonicClock
    /// The longest that anybody may wait.
    let longPoll: Duration

    /// What a request wants of the log.
    struct Question: Sendable {
        /// The last position that the reader knows; `nil` begins with the oldest event kept.
        var after: Int64?
        /// How many events it takes.
        var limit: Int32
        /// One group's events alone.
        var group: String?
        /// What is wanted of them.
        var filter: EventFilter
    }

    /// Reads what there is, as far as one question to the database goes.
    func look(_ question: Question) async throws -> EventStretch {
        do {
            return try await store.events(
                after: question.after, limit: question.limit, group: question.group, filter: question.filter)
        } catch EventRefusal.beyondEnd(let last) {
            throw Problem(.invalidRequest, "the log ends at \(last): that position belongs to another log")
        }
    }

    /// Reads, and waits up to `wait` for something to read.
    ///
    /// A filter may pass over more than one answer has time for: then there is nothing in it but how far the log was looked
    /// through.
    func read(_ question: Question, wait: Duration) async throws -> EventStretch {
        let start = clock.now()
        let end = start + wait.milliseconds * 1_000_000
        let searchEnd = start + Limits.eventSearch.milliseconds * 1_000_000
        var question = question
        while true {
            let rings = bell.rings
            let stretch = try await look(question)
            guard stretch.events.isEmpty, !Task.isCancelled, !Task.isShuttingDownGracefully else { return stretch }
            question.after = stretch.next
            guard stretch.isEnd else {
                guard clock.now() < searchEnd else { return stretch }
                continue
            }
            let left = end - clock.now()
            guard left > 0 else { return stretch }
            // A hint of another coordinator may be lost (fault F14); a second later the log is read anyway.
            await bell.wait(since: rings, limit: min(.seconds(1), .nanoseconds(left)), clock: .continuous)
        }
    }
}

extension EventReader.Question {
    /// What the query of a request asks for.
    init(_ request: Request, after: Int64?) throws(Problem) {
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
        self.init(after: after, limit: try request.pageLimit(), group: group, filter: filter)
    }
}

extension EventFilter.Refusal {
    /// What of the filter is refused, as requests call it.
    var subject: String {
        switch self {
        case .groups: "groups"
        case .types: "types"
        }
    }
}

extension Answer {
    /// A stretch of the log.
    static func events(_ stretch: EventStretch) throws -> Response {
        let document = EventsDocument(items: try stretch.events.map { try EventDocument($0) }, next: stretch.next)
        return Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try EventBytes.encode(document))))
    }
}
