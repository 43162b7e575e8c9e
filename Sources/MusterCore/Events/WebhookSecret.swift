import FoundationEssentials

/// The key that signs deliveries (Standard Webhooks): `whsec_` and the Base64 of 24 to 64 bytes.
///
/// It prints and reflects as a row of dots.
public struct WebhookSecret: Hashable, Sendable {
    /// The refusal of a text that is no secret. It does not contain the text.
    public struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// A refusal.
        public init() {}

        /// The rule that a secret has to keep.
        public var description: String {
            let bounds = Limits.webhookSecretBytes
            return "must be whsec_ and the Base64 of \(bounds.lowerBound) to \(bounds.upperBound) random bytes"
        }
    }

    private static let prefix = "whsec_"

    /// The key of the HMAC.
    public let key: [UInt8]

    /// Reads a secret as it was given or stored.
    public init(validating text: String) throws(Refusal) {
        let digits = text.dropFirst(Self.prefix.count)
        // Without its padding some receivers could not read it.
        guard text.hasPrefix(Self.prefix), digits.utf8.count % 4 == 0, let key = Base64.decode(digits),
            Limits.webhookSecretBytes.contains(key.count)
        else { throw Refusal() }
        self.key = key
    }

    /// Makes a secret of 32 bytes.
    public init(random generator: inout some RandomNumberGenerator) {
        key = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// The text that receivers are set up with.
    public var text: String { Self.prefix + Data(key).base64EncodedString() }
}

extension WebhookSecret: CustomStringConvertible, CustomReflectable {
    /// A row of dots, so that the secret is not shown.
    public var description: String { "•••" }
    /// Has no children, so that the secret is not shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
