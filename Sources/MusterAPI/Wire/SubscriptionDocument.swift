public import MusterCore

/// The body of `POST /v1/subscriptions`: a receiver of events (Standard Webhooks).
public struct SubscriptionRequest: Hashable, Sendable, Codable {
    /// Its name, by the rule of names.
    public var name: String
    /// The URL to which events are posted: `http` or `https`, without credentials.
    public var url: String
    /// The key that signs deliveries: `whsec_` and the Base64 of 24 to 64 bytes. When absent, the coordinator makes a key.
    public var secret: Secret?
    /// The groups whose events it gets: `*` stands for any characters, `?` for one; all groups when absent.
    public var groups: String?
    /// The types of events that it gets, such as `dev.muster.group.succeeded.v1`; all types when absent or empty.
    public var types: [String]?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case name, url, secret, groups, types
    }

    /// A subscription to be made.
    public init(name: String, url: String, secret: Secret? = nil, groups: String? = nil, types: [String]? = nil) {
        self.name = name
        self.url = url
        self.secret = secret
        self.groups = groups
        self.types = types
    }

    /// Reads a request; refuses unknown fields. The coordinator checks the values.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        url = try container.decode(String.self, forKey: .url)
        secret = try container.decodeIfPresent(Secret.self, forKey: .secret)
        groups = try container.decodeIfPresent(String.self, forKey: .groups)
        types = try container.decodeIfPresent([String].self, forKey: .types)
    }
}

/// The body of `PATCH /v1/subscriptions/{name}`; absent fields stay.
public struct SubscriptionPatch: Hashable, Sendable, Codable {
    /// The URL to which events are posted from now on, including deliveries that were tried before.
    public var url: String?
    /// The key that signs deliveries from now on; for 24 hours the previous key signs as well.
    public var secret: Secret?
    /// The groups whose events it gets; `*` is all groups, and so is `null` in JSON.
    public var groups: String?
    /// The types of events that it gets; an empty list is all types, and so is `null` in JSON.
    public var types: [String]?
    /// Whether events are posted. Events from the time while it was disabled are delivered once it is enabled.
    public var enabled: Bool?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case url, secret, groups, types, enabled
    }

    /// A change of a subscription.
    public init(
        url: String? = nil, secret: Secret? = nil, groups: String? = nil, types: [String]? = nil, enabled: Bool? = nil
    ) {
        self.url = url
        self.secret = secret
        self.groups = groups
        self.types = types
        self.enabled = enabled
    }

    /// Reads a change; refuses unknown fields, and `null` for a setting that can't be removed.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        if container.contains(.url) { url = try container.decode(String.self, forKey: .url) }
        if container.contains(.secret) { secret = try container.decode(Secret.self, forKey: .secret) }
        groups = try container.patch(String.self, forKey: .groups).orDefault("*")
        types = try container.patch([String].self, forKey: .types).orDefault([])
        if container.contains(.enabled) { enabled = try container.decode(Bool.self, forKey: .enabled) }
    }
}

/// A subscription as it is shown. A secret that was made for it is only in the answer to its creation.
public struct SubscriptionDocument: Hashable, Sendable, Codable {
    /// Its name.
    public var name: String
    /// The URL to which events are posted.
    public var url: String
    /// The groups whose events it gets.
    public var groups = "*"
    /// The types of events that it gets; empty for all types.
    public var types: [String] = []
    /// Whether events are posted.
    public var enabled = true
    /// Why events are not posted, if no request disabled it: the receiver has answered 410.
    public var disabledReason: String?
    /// The secret, only in the answer to the creation, if none was given. A caller that loses it sets a new secret.
    public var secret: String?
    /// The time until which the previous secret signs as well; `null` when there is none.
    public var previousSecretUntil: Timestamp?
    /// The position of the log up to which events have been turned into deliveries.
    public var position: Int64
    /// Deliveries under way or waiting for their next try; counted up to ``Limits/deliveriesCounted``.
    public var pending: Int64 = 0
    /// Deliveries that were given up and can be replayed; counted up to the same bound.
    public var dead: Int64 = 0
    /// When it was made.
    public var createdAt: Timestamp

    /// A subscription to every event.
    public init(name: String, url: String, position: Int64, createdAt: Timestamp) {
        self.name = name
        self.url = url
        self.position = position
        self.createdAt = createdAt
    }

    /// Writes every field, absent ones as `null`, except for the secret, which is left out.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(url, forKey: .url)
        try container.encode(groups, forKey: .groups)
        try container.encode(types, forKey: .types)
        try container.encode(enabled, forKey: .enabled)
        try container.encode(disabledReason, forKey: .disabledReason)
        try container.encodeIfPresent(secret, forKey: .secret)
        try container.encode(previousSecretUntil, forKey: .previousSecretUntil)
        try container.encode(position, forKey: .position)
        try container.encode(pending, forKey: .pending)
        try container.encode(dead, forKey: .dead)
        try container.encode(createdAt, forKey: .createdAt)
    }
}
