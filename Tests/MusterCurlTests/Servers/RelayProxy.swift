import Synchronization

/// A proxy that speaks CONNECT (RFC 9110 §9.3.6) and SOCKS 5 (RFC 1928, RFC 1929). It resolves no names: for any host it
/// connects to the requested port of 127.0.0.1.
final class RelayProxy: Sendable {
    private let server: RawServer
    private let seen: Asked

    /// The targets that clients asked for.
    private final class Asked: Sendable {
        let targets = Mutex<[String]>([])
    }

    /// The hosts and ports asked for so far.
    var targets: [String] { seen.targets.withLock { $0 } }

    /// `credentials`, as `user:password`, are demanded if given.
    init(credentials: String? = nil) throws {
        let seen = Asked()
        self.seen = seen
        server = try RawServer { connection, _ in
            let first = connection.read(1)
            if first == [5] {
                Self.serveSOCKS(connection, credentials, seen)
            } else if !first.isEmpty {
                Self.serveConnect(connection, first, credentials, seen)
            }
        }
    }

    func url(scheme: String, credentials: String? = nil) -> String {
        "\(scheme)://\(credentials.map { $0 + "@" } ?? "")127.0.0.1:\(server.port)"
    }

    func stop() { server.stop() }

    private static func serveConnect(
        _ connection: RawConnection, _ first: [UInt8], _ credentials: String?, _ seen: Asked
    ) {
        let head = String(decoding: first, as: UTF8.self) + connection.readHead()
        let words = head.prefix { $0 != "\r\n" }.split(separator: " ")
        guard words.count == 3, words[0] == "CONNECT", let colon = words[1].lastIndex(of: ":"),
            let port = UInt16(words[1][words[1].index(after: colon)...])
        else {
            connection.send("HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n")
            return
        }
        if let credentials, !head.contains("Proxy-Authorization: Basic \(base64(credentials))\r\n") {
            connection.send("HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return connection.finish()
        }
        seen.targets.withLock { $0.append(String(words[1])) }
        connection.send("HTTP/1.1 200 OK\r\nX-Proxy: 1\r\n\r\n")
        connection.relay(toPort: port)
    }

    private static func serveSOCKS(_ connection: RawConnection, _ credentials: String?, _ seen: Asked) {
        _ = connection.read(Int(connection.read(1).first ?? 0))
        connection.send([5, credentials == nil ? 0 : 2])
        if let credentials {
            let user = connection.read(Int(connection.read(2).last ?? 0))
            let password = connection.read(Int(connection.read(1).first ?? 0))
            let isRight = user + [0x3A] + password == Array(credentials.utf8)
            connection.send([1, isRight ? 0 : 1])
            guard isRight else { return connection.finish() }
        }
        let request = connection.read(4)
        // Only names are taken: an address would mean that the name was resolved on this side.
        guard request.count == 4, request[3] == 3 else {
            connection.send([5, 8, 0, 1, 0, 0, 0, 0, 0, 0])
            return connection.finish()
        }
        let name = connection.read(Int(connection.read(1).first ?? 0))
        let bytes = connection.read(2)
        guard bytes.count == 2 else { return }
        let port = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        seen.targets.withLock { $0.append("\(String(decoding: name, as: UTF8.self)):\(port)") }
        connection.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        connection.relay(toPort: port)
    }

    private static func base64(_ text: String) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        let bytes = Array(text.utf8)
        return stride(from: 0, to: bytes.count, by: 3).map { start in
            let group = bytes[start..<min(start + 3, bytes.count)]
            let word = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            let digits = (0..<4).map { String(alphabet[word >> (18 - 6 * $0) & 63]) }
            return digits.prefix(group.count + 1).joined() + String(repeating: "=", count: 3 - group.count)
        }.joined()
    }
}
