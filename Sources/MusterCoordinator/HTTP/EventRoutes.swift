import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore
import ServiceLifecycle

/// `/v1/events`: the log, by position.
struct EventRoutes: Sendable {
    let store: Store
    let bell: Bell
    let clock: MonotonicClock
    let longPoll: Duration

    func add(to group: RouterGroup<some RequestContext>) {
        group.get("events", use: read)
    }

    /// Reads from after a position. With `wait` the answer is held back until there is something or the time is up.
    private func read(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let after = try request.query("after", in: 0...Int64.max, default: 0)
        let limit = try request.pageLimit()
        let group = try request.query("group")
        if let group, !NameRule.accepts(group) { throw Problem(.invalidRequest, "group \(NameRule.explanation)") }
        let wait = try request.query("wait", atMost: longPoll)
        let end = clock.now() + wait.milliseconds * 1_000_000
        var position = after
        while true {
            let (events, next) = try await store.events(after: position, limit: limit, group: group)
            let left = end - clock.now()
            if !events.isEmpty || left <= 0 || Task.isCancelled || Task.isShuttingDownGracefully {
                return try Answer.json(EventsDocument(items: events.map { EventDocument($0) }, next: next))
            }
            position = next
            // A ring may be missed between the read and the wait; a second later the log is read anyway.
            await bell.wait(limit: min(.seconds(1), .nanoseconds(left)))
        }
    }
}
