import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/events`: the log, by position.
struct EventRoutes: Sendable {
    let reader: EventReader
    let gate = StreamGate(limit: Limits.eventStreams)

    func add(to group: RouterGroup<some RequestContext>) {
        group.get("events", use: read)
    }

    /// Reads from after a position. With `wait` the answer is held back until there is an event or the time is up; a reader
    /// that prefers an event stream gets one.
    private func read(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let after = try request.query("after").map { _ in try request.query("after", in: 0...Int64.max, default: 0) }
        var question = try EventReader.Question(request, after: after, of: try request.query("log"))
        let accepted = AcceptField(request.headers[values: .accept])
        guard accepted.prefers("text/event-stream", to: "application/json") else {
            return try Answer.events(
                try await reader.read(question, wait: try request.query("wait", atMost: reader.longPoll)))
        }
        // A reader that reconnects still asks for the position where it began. An empty id is none, as in a stream.
        if let last = request.headers[.lastEventID], !last.isEmpty {
            guard let position = Int64(last), position >= 0 else {
                throw Problem(.invalidRequest, "Last-Event-ID must be the position of an event")
            }
            question.after = position
        }
        // Dropped events are reported before the head is sent, while a status can still say so.
        let start = try await reader.look(question).stretch
        question.after = start.events.first.map { $0.position - 1 } ?? start.next
        // The stream ends when the log is another one, since its positions differ.
        question.log = start.log
        guard let place = gate.enter() else {
            throw Problem(
                .busy, "\(Limits.eventStreams) event streams are open; read by position, or from another coordinator")
        }
        let stream = EventStream(reader: reader, question: question)
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await stream.write(to: &writer)
                withExtendedLifetime(place) {}
            })
    }
}

extension HTTPField.Name {
    /// The position of the last event that a reader of an event stream received.
    fileprivate static var lastEventID: Self { .init("Last-Event-ID")! }
}
