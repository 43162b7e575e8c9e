import MusterTestSupport

/// The receiver of the storm's webhooks, which fails at times (F15).
struct StormReceiver: Sendable {
    let receiver: WebhookReceiver
    private let mode: Observed<WebhookReceiver.Answer>

    /// How it fails. 410 is missing: it ends a subscription.
    private static let failures: [WebhookReceiver.Answer] = [
        .status(500), .status(302), .late(.seconds(2)), .endless, .silentBody, .hang, .die,
    ]

    static func start() async throws -> StormReceiver {
        let mode = Observed(WebhookReceiver.Answer.taken)
        return StormReceiver(receiver: try await WebhookReceiver.start { _, _ in mode.value }, mode: mode)
    }

    /// Fails in a random way from now on.
    func fail(using random: inout SeededGenerator) {
        let failure = Self.failures.randomElement(using: &random) ?? .hang
        mode.update { $0 = failure }
    }

    /// Takes every delivery again.
    func calm() { mode.update { $0 = .taken } }
}
