import Glibc
import MusterCore

/// Where a coordinator listens: `HOST:PORT`, with brackets around an IPv6 address.
struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// A name or an address, without brackets.
    let host: String
    /// The port; 0 means any free port.
    let port: Int

    /// An address.
    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Parses `127.0.0.1:7300`, `localhost:7300` or `[::1]:7300`; `nil` for anything else.
    init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let port = UInt16(digits) else {
            return nil
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            guard host.contains(":") else { return nil }
        } else {
            guard !host.contains(":"), !host.contains("["), !host.contains("]") else { return nil }
        }
        guard !host.isEmpty, !host.utf8.contains(UInt8(ascii: "/")), !host.contains(where: \.isWhitespace) else {
            return nil
        }
        self.init(host: String(host), port: Int(port))
    }

    /// The address as it is typed.
    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Whether it means all addresses of the machine.
    var isWildcard: Bool { host == "0.0.0.0" || host == "::" }

    /// The base URL of a coordinator that listens there, for processes of the same machine.
    var url: String {
        switch host {
        case "0.0.0.0": "http://127.0.0.1:\(port)"
        case "::": "http://[::1]:\(port)"
        default: "http://\(self)"
        }
    }
}

/// The host name of this machine.
enum MachineName {
    /// The name; `nil` if it has none.
    static var text: String? {
        // One byte stays unfilled, so that the text is always terminated.
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return nil }
        let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// The names by which other machines may address this one: its name, and the name without its domain. No other party can make either
    /// resolve to an address, as far as host names can be trusted at all (adr/0019).
    static var hosts: [String] { text.map(hosts(of:)) ?? [] }

    /// These names for a machine of that name.
    static func hosts(of name: String) -> [String] {
        guard NameRule.accepts(name), !name.hasPrefix("."), !name.contains("_") else { return [] }
        let label = String(name.prefix { $0 != "." })
        return label == name ? [name] : [name, label]
    }
}
