import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/subscriptions` and `/v1/deliveries`: the receivers of events, and the deliveries to them.
struct SubscriptionRoutes: Sendable {
    let store: Store

    func add(to group: RouterGroup<some RequestContext>) {
        group.post("subscriptions", use: create)
        group.get("subscriptions", use: list)
        group.get("subscriptions/:name") { _, context in
            try Answer.json(SubscriptionDocument(try await store.subscription(try context.path("name"))))
        }
        group.patch("subscriptions/:name", use: change)
        group.delete("subscriptions/:name") { _, context in
            try await store.removeSubscription(try context.path("name"))
            return Answer.empty
        }
        group.get("deliveries", use: deliveries)
        group.post("deliveries/:id/replay", use: replay)
    }

    /// Creates a subscription. Only this answer shows a generated secret; a secret that the caller gave is never shown.
    private func create(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let wish = try await request.document(SubscriptionRequest.self)
        guard NameRule.accepts(wish.name) else {
            throw Problem(.invalidRequest, NameRule.explanation, pointer: "/name")
        }
        let url = try Self.receiver(wish.url)
        let filter = try Self.filter(groups: wish.groups, types: wish.types ?? [])
        var generator = SystemRandomNumberGenerator()
        let given = try wish.secret.map { try Self.secret($0) }
        let made = try await store.createSubscription(
            wish.name, url: url, secret: given ?? WebhookSecret(random: &generator), filter: filter)
        let document = SubscriptionDocument(made.record, secret: given == nil ? made.secret : nil)
        return try Answer.json(document, status: .created)
    }

    private func list(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let limit = try request.pageLimit()
        let subscriptions = try await store.subscriptions(after: try request.query("after"), limit: limit)
        let next = subscriptions.count == Int(limit) ? subscriptions.last?.name : nil
        return try Answer.json(Page(items: subscriptions.map { SubscriptionDocument($0) }, next: next))
    }

    private func change(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let wish = try await request.document(SubscriptionPatch.self)
        var change = SubscriptionChange()
        change.url = try wish.url.map { try Self.receiver($0) }
        change.secret = try wish.secret.map { try Self.secret($0) }
        _ = try Self.filter(groups: wish.groups, types: wish.types ?? [])
        change.groups = wish.groups
        change.types = wish.types
        change.isEnabled = wish.enabled
        let record = try await store.change(subscription: try context.path("name"), change)
        return try Answer.json(SubscriptionDocument(record))
    }

    private func deliveries(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let limit = try request.pageLimit()
        let deliveries = try await store.deliveries(
            state: try request.query("state", as: DeliveryState.self), subscription: try request.query("subscription"),
            after: try request.query("after", in: 0...Int64.max, default: 0), limit: limit)
        let next = deliveries.count == Int(limit) ? deliveries.last.map { String($0.id) } : nil
        return try Answer.json(Page(items: deliveries.map { DeliveryDocument($0) }, next: next))
    }

    private func replay(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let text = try context.path("id")
        guard let id = Int64(text), id > 0 else {
            throw Problem(.deliveryNotFound, "\"\(text)\" is no delivery's number")
        }
        let record = try await store.replay(delivery: id)
        return try Answer.json(DeliveryDocument(record), status: .accepted)
    }

    /// The URL of a receiver, checked. Which address it leads to is checked at the moment of connecting.
    private static func receiver(_ text: String) throws(Problem) -> String {
        do {
            let url = try SourceURL(validating: text)
            guard url.origin.hasPrefix("http://") || url.origin.hasPrefix("https://") else {
                throw Problem(.invalidRequest, "events are posted by http or https", pointer: "/url")
            }
            return url.string
        } catch let refusal as SourceURL.Refusal {
            let reason =
                refusal == .credentials
                ? "a URL with user and password would be shown; receivers check the signature" : refusal.description
            throw Problem(.invalidRequest, reason, pointer: "/url")
        } catch {
            throw Problem(error)
        }
    }

    private static func secret(_ secret: Secret) throws(Problem) -> WebhookSecret {
        do {
            return try WebhookSecret(validating: secret.given)
        } catch {
            throw Problem(.invalidRequest, error.description, pointer: "/secret")
        }
    }

    private static func filter(groups: String?, types: [String]) throws(Problem) -> EventFilter {
        do {
            return try EventFilter(groups: groups, types: types)
        } catch {
            throw Problem(.invalidRequest, error.description, pointer: "/\(error.subject)")
        }
    }
}
