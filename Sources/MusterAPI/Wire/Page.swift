/// A page of a listing.
public struct Page<Item: Codable & Sendable>: Codable, Sendable {
    /// The items, in the order of the listing.
    public var items: [Item]
    /// The value to pass as `after=` for the next page; `null` on the last page.
    public var next: String?

    /// A page.
    public init(items: [Item], next: String?) {
        self.items = items
        self.next = next
    }

    /// Writes the end of the listing as an explicit `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(items, forKey: .items)
        try container.encode(next, forKey: .next)
    }

    private enum CodingKeys: String, CodingKey {
        case items, next
    }
}
