public import MusterCore

extension MusterClient {
    private static func consumer(_ name: String) -> String { "/v1/consumers/" + PercentEncoding.encodeSegment(name) }

    private static func subscription(_ name: String) -> String {
        "/v1/subscriptions/" + PercentEncoding.encodeSegment(name)
    }

    /// `GET /v1/consumers/{name}/events`: the events after the consumer's place; waits up to `wait` for some.
    ///
    /// - Parameters:
    ///   - groups: a pattern of group names, with `*` and `?`.
    ///   - types: types of events; all when empty.
    /// - Throws: `Problem` with the code `eventsGone` when the consumer has been away for longer than events are kept.
    public func consumerEvents(
        _ name: String, limit: Int? = nil, wait: Duration? = nil, groups: String? = nil, types: [String] = []
    ) async throws -> EventsDocument {
        try await call(
            "GET", Self.consumer(name) + "/events",
            query: [
                ("limit", limit.map(String.init)), ("wait", wait.map { "\($0.milliseconds)ms" }), ("groups", groups),
                ("types", types.isEmpty ? nil : types.joined(separator: ",")),
            ],
            timeout: Self.answerTime + (wait ?? .zero), as: EventsDocument.self)
    }

    /// `POST /v1/consumers/{name}/ack`: everything up to the position has been processed. A place only moves forward; the answer says where
    /// it is.
    ///
    /// - Parameter log: the log that the position belongs to.
    /// - Throws: `Problem` with the code `otherLog` if that is not the current log.
    public func acknowledge(
        _ position: Int64, of log: String? = nil, consumer name: String
    ) async throws -> ConsumerDocument {
        try await call(
            "POST", Self.consumer(name) + "/ack", body: Self.json(AcknowledgementRequest(position: position, log: log)),
            as: ConsumerDocument.self)
    }

    /// `PUT /v1/consumers/{name}/holder`: reserves the consumer for this holder, or renews the hold.
    ///
    /// - Throws: `Problem` with the code `conflict` while another holder has it.
    public func holdConsumer(
        _ name: String, holder: String, for length: Duration
    ) async throws -> ConsumerHoldDocument {
        try await call(
            "PUT", Self.consumer(name) + "/holder",
            body: Self.json(ConsumerHoldRequest(holder: holder, seconds: length.components.seconds)),
            as: ConsumerHoldDocument.self)
    }

    /// `DELETE /v1/consumers/{name}/holder`: releases the consumer; has no effect if another holder has it.
    public func releaseConsumer(_ name: String, holder: String) async throws {
        try await exchange(
            "DELETE", Self.consumer(name) + "/holder?holder=" + PercentEncoding.encodeSegment(holder))
    }

    /// A page of `GET /v1/consumers`.
    public func consumers(after: String? = nil, limit: Int? = nil) async throws -> Page<ConsumerDocument> {
        try await call(
            "GET", "/v1/consumers", query: [("after", after), ("limit", limit.map(String.init))],
            as: Page<ConsumerDocument>.self)
    }

    /// `DELETE /v1/consumers/{name}`: removes the consumer and its place.
    public func removeConsumer(_ name: String) async throws {
        try await exchange("DELETE", Self.consumer(name), removes: true)
    }

    /// `POST /v1/subscriptions`. If no secret was given, the answer holds the secret that was made, only this once. With an idempotency key
    /// a repetition after a lost answer returns it again (I10).
    public func createSubscription(
        _ subscription: SubscriptionRequest, idempotencyKey: String? = nil
    ) async throws -> SubscriptionDocument {
        try await call(
            "POST", "/v1/subscriptions", body: Self.json(subscription),
            headers: Self.headers(key: idempotencyKey), as: SubscriptionDocument.self)
    }

    /// A page of `GET /v1/subscriptions`.
    public func subscriptions(after: String? = nil, limit: Int? = nil) async throws -> Page<SubscriptionDocument> {
        try await call(
            "GET", "/v1/subscriptions", query: [("after", after), ("limit", limit.map(String.init))],
            as: Page<SubscriptionDocument>.self)
    }

    /// `GET /v1/subscriptions/{name}`.
    public func subscription(_ name: String) async throws -> SubscriptionDocument {
        try await call("GET", Self.subscription(name), as: SubscriptionDocument.self)
    }

    /// `PATCH /v1/subscriptions/{name}`.
    public func changeSubscription(_ name: String, _ patch: SubscriptionPatch) async throws -> SubscriptionDocument {
        try await call("PATCH", Self.subscription(name), body: Self.json(patch), as: SubscriptionDocument.self)
    }

    /// `DELETE /v1/subscriptions/{name}`: removes the subscription and its deliveries.
    public func removeSubscription(_ name: String) async throws {
        try await exchange("DELETE", Self.subscription(name), removes: true)
    }

    /// A page of `GET /v1/deliveries`, the oldest first.
    public func deliveries(
        state: DeliveryState? = nil, subscription: String? = nil, after: String? = nil, limit: Int? = nil
    ) async throws -> Page<DeliveryDocument> {
        try await call(
            "GET", "/v1/deliveries",
            query: [
                ("state", state?.rawValue), ("subscription", subscription), ("after", after),
                ("limit", limit.map(String.init)),
            ],
            as: Page<DeliveryDocument>.self)
    }

    /// `POST /v1/deliveries/{id}/replay`: delivers the event once more, with a fresh schedule.
    public func replay(delivery id: Int64) async throws -> DeliveryDocument {
        try await call("POST", "/v1/deliveries/\(id)/replay", as: DeliveryDocument.self)
    }
}
