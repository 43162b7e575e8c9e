import MusterCore
import Synchronization

/// Which addresses this worker asks (range contract, row 39), as its session's coordinator said last.
final class SourceGuard: Sendable {
    private let rule = Mutex<AddressGuard?>(nil)
    private let predicate: (@Sendable (String) -> Bool)?

    /// A guard that allows everything until a session brings a rule.
    ///
    /// - Parameter predicate: asked besides; what it refuses stays refused.
    init(besides predicate: (@Sendable (_ numericAddress: String) -> Bool)? = nil) {
        self.predicate = predicate
    }

    /// Takes over the rule of a new session; transfers under way are held to it from their next connection on.
    func adopt(_ rule: AddressGuard?) {
        self.rule.withLock { $0 = rule }
    }

    /// Whether a numeric address may be connected to. Asked on the threads of the loops.
    func allows(_ numericAddress: String) -> Bool {
        guard predicate?(numericAddress) ?? true else { return false }
        return rule.withLock { $0 }?.allows(numericAddress) ?? true
    }

    /// Why a proxy may not be asked for a URL; `nil` when it may.
    ///
    /// The proxy resolves names, so that nobody here sees the addresses that they lead to; what the URL itself says of the
    /// address is all that can be checked.
    func refusal(byProxyOf url: String) -> String? {
        guard let rule = rule.withLock({ $0 }), rule.refusesPrivate else { return nil }
        guard let host = URLHost(of: url) else { return "the URL has no host" }
        return host.isAllowed(by: rule) ? nil : "the host \(host.name) is not allowed"
    }
}

/// The host of a URL, and what it tells of the address without being resolved.
struct URLHost: Sendable, Hashable {
    /// In lower case, without brackets and without the dot that may end it.
    let name: String

    /// The host of an absolute URL; `nil` when there is none. Whatever could be read in two ways is read as the host that
    /// stands last, which is how curl reads it.
    init?(of url: String) {
        guard let scheme = url.range(ofText: "://") else { return nil }
        let rest = url.utf8[scheme.upperBound...]
        let authority = rest.prefix { !"/?#\\".utf8.contains($0) }
        let hostAndPort = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[authority.index(after: $0)...] }
        var host = hostAndPort ?? authority
        if host.first == UInt8(ascii: "[") {
            host = host.dropFirst().prefix { $0 != UInt8(ascii: "]") }
        } else {
            host = host.prefix { $0 != UInt8(ascii: ":") }
        }
        if host.last == UInt8(ascii: ".") { host = host.dropLast() }
        guard !host.isEmpty, let text = String(host) else { return nil }
        name = text.lowercased()
    }

    /// Whether a rule leaves it to be asked for. A name may be asked for unless it always means the machine that resolves it; an
    /// address has to be one that the rule allows. Unusual spellings of addresses (`127.1`, `0x7f000001`) are refused.
    func isAllowed(by rule: AddressGuard) -> Bool {
        if name == "localhost" || name.hasSuffix(".localhost") { return rule.allows("127.0.0.1") }
        return isAddress ? rule.allows(name) : true
    }

    /// Whether it is written as an address: with a colon, or with a number as its last part, in which case no resolver takes it
    /// for a name.
    private var isAddress: Bool {
        if name.utf8.contains(UInt8(ascii: ":")) { return true }
        let last =
            name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).last ?? name.utf8[...]
        if last.starts(with: "0x".utf8) { return true }
        return !last.isEmpty && last.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}

extension String {
    /// Where `text` stands first.
    fileprivate func range(ofText text: String) -> Range<String.Index>? {
        var start = utf8.startIndex
        while start < utf8.endIndex {
            if utf8[start...].starts(with: text.utf8) {
                return start..<utf8.index(start, offsetBy: text.utf8.count)
            }
            start = utf8.index(after: start)
        }
        return nil
    }
}
