import MusterCore

/// A host as it stands in a Host field, in an origin and in `--host`: a name or an address, without brackets, in lower case and
/// without the dot that may end it.
struct HostName: Hashable, Sendable {
    /// The name or address.
    let text: String

    /// Reads a host without a port; `nil` when the text is anything else.
    init?(_ host: some StringProtocol) {
        guard let (name, port) = Self.split(Substring(host)), port == nil else { return nil }
        self = name
    }

    /// Reads a host to listen on, where an IPv6 address needs no brackets.
    init?(listening host: String) {
        guard let name = Self(host) ?? Self("[\(host)]") else { return nil }
        self = name
    }

    private init(checked text: String) { self.text = text }

    /// Reads `HOST` or `HOST:PORT`, with brackets around an IPv6 address; `nil` for anything else, such as an authority
    /// with a user.
    static func split(_ authority: Substring) -> (host: HostName, port: UInt16?)? {
        var host = authority
        var port: UInt16?
        if host.first == "[" {
            guard let end = host.firstIndex(of: "]") else { return nil }
            let rest = host[host.index(after: end)...]
            host = host[host.index(after: host.startIndex)..<end]
            guard host.contains(":"), AddressRange(String(host)) != nil, !host.contains("/") else { return nil }
            if !rest.isEmpty {
                guard rest.first == ":", let number = Self.port(rest.dropFirst()) else { return nil }
                port = number
            }
        } else {
            if let colon = host.firstIndex(of: ":") {
                guard let number = Self.port(host[host.index(after: colon)...]) else { return nil }
                port = number
                host = host[..<colon]
            }
            if host.last == "." { host = host.dropLast() }
            let isName = host.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                    true
                case _: false
                }
            }
            guard isName, !host.isEmpty, host.utf8.count <= Limits.hostBytes else { return nil }
        }
        return (HostName(checked: host.lowercased()), port)
    }

    private static func port(_ text: Substring) -> UInt16? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? UInt16(text) : nil
    }

    /// Whether it always means the machine that asks. Names other than `localhost` are not looked up and don't count: a name may
    /// begin with `127.`, too.
    var isLoopback: Bool {
        text == "localhost" || text == "::1" || isIPv4 && text.hasPrefix("127.")
    }

    /// Whether it is an address, which no resolver can lead elsewhere.
    var isAddress: Bool { isIPv4 || text.contains(":") }

    /// Whether it stands for all addresses of the machine, as a host to listen on.
    var isWildcard: Bool { text == "0.0.0.0" || text == "::" }

    private var isIPv4: Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { part in UInt8(part).map { String($0) == part } ?? false }
    }
}
