import Glibc
import MusterCore

/// The host of a URL, and what its text tells of the address without being resolved.
struct URLHost: Sendable, Hashable {
    /// In lower case, without brackets and without the dot that may end it.
    let name: String

    /// The host of an absolute URL; `nil` when there is none. A URL that can be read in two ways is read as curl reads
    /// it: the last host counts.
    init?(of url: String) {
        guard let scheme = url.range(ofText: "://") else { return nil }
        let rest = url.utf8[scheme.upperBound...]
        // A backslash does not end the authority for curl: what stands before an @ behind it is a user.
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
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

    /// Whether a rule allows asking for the host. A name is allowed unless it always means the machine that resolves it; an address has to be allowed by the
    /// rule. Unusual spellings of addresses (`127.1`, `0x7f000001`) are refused.
    func isAllowed(by rule: AddressGuard) -> Bool {
        if name == "localhost" || name.hasSuffix(".localhost") { return rule.allows("127.0.0.1") }
        return isAddress ? rule.allows(name) : true
    }

    /// Whether it is written as an address: with a colon, or with a number as its last part, in which case no resolver takes it
    /// for a name.
    var isAddress: Bool {
        if name.utf8.contains(UInt8(ascii: ":")) { return true }
        let last =
            name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).last ?? name.utf8[...]
        if last.starts(with: "0x".utf8) { return true }
        return !last.isEmpty && last.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}

extension URLHost {
    /// Suffixes of names that mean something only inside a network (RFC 6761, RFC 6762, RFC 8375, and others in common use).
    private static let internalSuffixes = [
        ".local", ".localdomain", ".internal", ".intranet", ".private", ".corp", ".lan", ".home", ".arpa",
    ]

    /// Whether a name that has no address here may be one of the public Internet: it has several parts and only the usual characters, and does not end as
    /// internal names do.
    var mayBePublic: Bool {
        let isPlain = name.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || "-._".utf8.contains(byte)
        }
        return isPlain && name.utf8.contains(UInt8(ascii: "."))
            && !Self.internalSuffixes.contains { name.hasSuffix($0) }
    }

    /// The numeric addresses that the name has on this machine. Blocks.
    func addresses() -> [String] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let entry = next {
            var text = [CChar](repeating: 0, count: 64)
            let code = getnameinfo(
                entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            // An address that can't be read is refused by every rule.
            let length = text.firstIndex(of: 0) ?? text.count
            addresses.append(
                code == 0 ? String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self) : "")
            next = entry.pointee.ai_next
        }
        return addresses
    }
}

extension String {
    /// The first occurrence of `text`.
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
