import Testing

@testable import MusterCoordinator

/// The choice between two types by the Accept field (RFC 9110 §12.5.1).
struct AcceptFieldTests {
    private func prefersStream(_ fields: [String]) -> Bool {
        AcceptField(fields).prefers("text/event-stream", to: "application/json")
    }

    @Test(
        arguments: [
            ["text/event-stream"], ["Text/Event-Stream; charset=utf-8"], ["text/event-stream", "application/json"],
            ["application/json, text/event-stream"], ["application/json;q=0.4, text/event-stream;q=0.5"],
            ["text/event-stream;q=0.1"], ["text/event-stream, */*"], ["text/event-stream ; Q=0.8, */*;q=0.7"],
            ["*/*, application/json;q=0, text/event-stream;q=0.001"],
        ] as [[String]])
    func typeThatIsNamedAndWeighsAsMuchIsPreferred(fields: [String]) {
        #expect(prefersStream(fields))
    }

    @Test(
        arguments: [
            [], [""], ["*/*"], ["text/*"], ["application/json"],
            ["text/event-stream;q=0"], ["text/event-stream; q=0.000"],
            ["application/json, text/event-stream;q=0.1"], ["text/event-stream;q=0.1", "application/json;q=0.2"],
            ["text/event-stream;q=0.5, */*"], ["text/event-stream;q=0.5, application/*;q=0.6, */*;q=0.1"],
        ] as [[String]])
    func typeThatIsNotNamedOrWeighsLessIsNot(fields: [String]) {
        #expect(!prefersStream(fields))
    }
}
