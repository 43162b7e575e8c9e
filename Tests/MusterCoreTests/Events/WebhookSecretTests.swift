import MusterCore
import Testing

/// The secrets of webhooks.
struct WebhookSecretTests {
    @Test func secretIsReadAsItIsWritten() throws {
        let text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        let secret = try WebhookSecret(validating: text)
        #expect(secret.text == text && secret.key.count == 24)
        var generator = SystemRandomNumberGenerator()
        let made = WebhookSecret(random: &generator)
        #expect(made.key.count == 32 && made.text.hasPrefix("whsec_"))
        #expect(try WebhookSecret(validating: made.text) == made)
        #expect(WebhookSecret(random: &generator) != made)
    }

    @Test(
        arguments: [
            "", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa==",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA",
            "whsec_" + String(repeating: "AAAA", count: 22),
        ])
    func malformedWebhookSecretIsRefused(text: String) {
        #expect(throws: WebhookSecret.Refusal()) { try WebhookSecret(validating: text) }
    }

    @Test func secretIsNotPrinted() throws {
        let secret = try WebhookSecret(validating: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        #expect("\(secret)" == "•••" && String(reflecting: secret) == "•••")
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }
}
