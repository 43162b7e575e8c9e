import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/consumers`: named readers of the log, whose places are kept.
struct ConsumerRoutes: Sendable {
    let store: Store
    let reader: EventReader

    /// - Parameter readers: the routes within the readers' share, for requests that only read and don't wait.
    func add(to group: RouterGroup<some RequestContext>, readers: RouterGroup<some RequestContext>) {
        readers.get("consumers", use: list)
        group.get("consumers/:name/events", use: read)
        group.post("consumers/:name/ack", use: acknowledge)
        group.put("consumers/:name/holder", use: hold)
        group.delete("consumers/:name/holder") { request, context in
            guard let holder = try request.query("holder") else {
                throw Problem(.invalidRequest, "is missing", pointer: "/holder")
            }
            try await store.release(try context.consumerName(), holder: holder)
            return Answer.empty
        }
        group.delete("consumers/:name") { _, context in
            try await store.removeConsumer(try context.consumerName())
            return Answer.empty
        }
    }

    private func list(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let limit = try request.pageLimit()
        let consumers = try await store.consumers(after: try request.query("after"), limit: limit)
        let next = consumers.count == Int(limit) ? consumers.last?.name : nil
        return try Answer.json(Page(items: consumers.map { ConsumerDocument($0) }, next: next))
    }

    /// Reads from the consumer's place on. Only an acknowledgement moves the place: a consumer that dies before it is given
    /// the same events again.
    private func read(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let name = try context.consumerName()
        let wait = try request.query("wait", atMost: reader.longPoll)
        let place = try await reader.share.enter { try await store.place(of: name) }
        let question = try EventReader.Question(request, after: place.position, of: place.log)
        return try Answer.events(try await reader.read(question, wait: wait))
    }

    private func hold(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let name = try context.consumerName()
        let wish = try await request.document(ConsumerHoldRequest.self)
        let until = try await store.hold(name, holder: wish.holder, for: .seconds(wish.seconds))
        return try Answer.json(ConsumerHoldDocument(name: name, until: until))
    }

    private func acknowledge(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let name = try context.consumerName()
        let wish = try await request.document(AcknowledgementRequest.self)
        return try Answer.json(
            ConsumerDocument(try await store.acknowledge(wish.position, of: wish.log, consumer: name)))
    }
}

extension RequestContext {
    /// The name of a consumer, which follows the rule of names.
    fileprivate func consumerName() throws(Problem) -> String {
        let name = try path("name")
        guard NameRule.accepts(name) else {
            throw Problem(.invalidRequest, "the name of a consumer \(NameRule.explanation)")
        }
        return name
    }
}

extension ConsumerDocument {
    /// A consumer as it is shown.
    fileprivate init(_ record: ConsumerRecord) {
        self.init(
            name: record.name, position: record.position, behind: record.behind, acknowledgedAt: record.acknowledgedAt)
    }
}
