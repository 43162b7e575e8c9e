import Crypto
import FoundationEssentials
import MusterAPI
import MusterCore
import MusterStore

extension WebhookRequest {
    /// A try to deliver an event, in the form of Standard Webhooks: `webhook-id` is the event's id in every try, and every
    /// valid secret signs, the newest first.
    init(_ delivery: ClaimedDelivery, timeout: Duration) throws {
        let body = try EventBytes.encode(EventDocument(delivery.event))
        // Seconds on the database's clock (I11). Receivers allow some minutes of difference to theirs.
        let timestamp = String(delivery.moment.microseconds / 1_000_000)
        let signatures = delivery.secrets.map {
            "v1," + Self.signature(id: delivery.event.id, timestamp: timestamp, body: body, secret: $0)
        }
        self.init(
            url: delivery.url,
            headers: [
                ("Content-Type", "application/cloudevents+json; charset=utf-8"),
                ("webhook-id", delivery.event.id),
                ("webhook-timestamp", timestamp),
                ("webhook-signature", signatures.joined(separator: " ")),
            ],
            body: body, timeout: timeout, answerLimit: Limits.webhookAnswer)
    }

    /// Base64 of the HMAC-SHA256 over `id.timestamp.body`. Neither an id nor a timestamp has a dot in it.
    static func signature(id: String, timestamp: String, body: [UInt8], secret: WebhookSecret) -> String {
        var hmac = HMAC<SHA256>(key: SymmetricKey(data: secret.key))
        hmac.update(data: Data("\(id).\(timestamp).".utf8))
        hmac.update(data: body)
        return Data(hmac.finalize()).base64EncodedString()
    }
}

/// Encodes events. The same event has the same bytes, wherever it is encoded and read (I9).
enum EventBytes {
    /// An event, or a stretch of them, as JSON with sorted keys on one line.
    static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }
}
