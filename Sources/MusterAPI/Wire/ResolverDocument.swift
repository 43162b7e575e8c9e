/// A group's resolver as the API shows it: its URL, without anything that could be a secret.
public struct ResolverDocument: Hashable, Sendable, Codable {
    /// Its URL. The values of its query are replaced by dots, since they are often API keys.
    public var url: String

    /// The parts of a resolver that may be shown.
    public init(_ resolver: Resolver) {
        url = Self.shown(resolver.url)
    }

    /// The URL with every value of its query hidden; a query without names is hidden as a whole.
    static func shown(_ url: String) -> String {
        let parts = url.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)[0]
            .split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return String(parts[0]) }
        let items = parts[1].split(separator: "&").map { item in
            item.firstIndex(of: "=").map { item[...$0] + "•••" } ?? "•••"
        }
        return parts[0] + "?" + items.joined(separator: "&")
    }
}
