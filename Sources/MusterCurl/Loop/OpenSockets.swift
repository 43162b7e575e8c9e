import CLibcurl
import Glibc

/// Why a request does not go out on a connection that was used before.
enum UnfitConnection: String {
    /// The peer sent more on it than was asked for (range contract, row 28).
    case surplus = "more came on the connection than was asked for"
    /// HTTP/1.1 was spoken on it, which the origin refuses (row 23).
    case http1 = "the connection speaks HTTP/1.1"
    /// Another request is under way on it, and it is not known to speak HTTP/2.
    case busy = "another request is under way on the connection"
}

/// The sockets of a loop's connections, so that a connection can be checked before it is reused. libcurl 7.88 sends a
/// request on a connection that holds unread bytes beyond the previous response, and takes those bytes for the new
/// response (range contract, row 28). It belongs to the loop's thread.
final class OpenSockets {
    /// Identifies a connection among all that are open at the same time.
    struct Connection: Hashable {
        /// The peer's numeric address.
        let peer: String
        /// The peer's port.
        let peerPort: UInt16
        /// The local port.
        let ownPort: UInt16
    }

    private var sockets: Set<curl_socket_t> = []
    private var byConnection: [Connection: curl_socket_t] = [:]
    /// The sockets on which HTTP/1.1 was asked for.
    private var http1: Set<curl_socket_t> = []
    /// The sockets on which HTTP/2 was spoken.
    private var http2: Set<curl_socket_t> = []
    /// The transfers whose requests went out on a connection and are not over.
    private var users: [curl_socket_t: Set<TransferID>] = [:]

    /// A socket was opened for libcurl.
    func opened(_ socket: curl_socket_t) {
        sockets.insert(socket)
    }

    /// Closes a socket that libcurl no longer needs.
    func close(_ socket: curl_socket_t) -> Int32 {
        sockets.remove(socket)
        http1.remove(socket)
        http2.remove(socket)
        users[socket] = nil
        if let known = byConnection.first(where: { $0.value == socket }) { byConnection[known.key] = nil }
        return Glibc.close(socket)
    }

    /// Whether a connection is open.
    func isOpen(_ connection: Connection) -> Bool { socket(of: connection) != nil }

    /// Whether a connection holds unread bytes. The end of the connection does not count: libcurl sees it by itself.
    func hasUnread(on connection: Connection) -> Bool {
        guard let socket = socket(of: connection) else { return false }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    /// Notes that a request in HTTP/1.1 goes out on a connection, which speaks no other version.
    func noteHTTP1(on connection: Connection) {
        if let socket = socket(of: connection) { http1.insert(socket) }
    }

    /// Whether a request in HTTP/1.1 went out on a connection.
    func spokeHTTP1(on connection: Connection) -> Bool { socket(of: connection).map(http1.contains) == true }

    /// Notes that an answer in HTTP/2 came on a connection: it carries several requests at once.
    func noteHTTP2(on connection: Connection) {
        if let socket = socket(of: connection) { http2.insert(socket) }
    }

    /// Whether another transfer's request is under way on a connection that carries one at a time, as far as is known. As soon as one connection to an
    /// origin has spoken HTTP/2, libcurl 7.88 sends requests on any other one, also if that speaks HTTP/1.1 and waits for an answer: two transfers
    /// would then share out the bytes of one answer.
    func isBusy(_ connection: Connection, besides transfer: TransferID) -> Bool {
        guard let socket = socket(of: connection), !http2.contains(socket), let users = users[socket] else {
            return false
        }
        return users.contains { $0 != transfer }
    }

    /// Notes that the request of a transfer goes out on a connection.
    func begin(_ transfer: TransferID, on connection: Connection) {
        if let socket = socket(of: connection) { users[socket, default: []].insert(transfer) }
    }

    /// Notes that the request of a transfer is over.
    func end(_ transfer: TransferID, on connection: Connection) {
        guard let socket = byConnection[connection] else { return }
        users[socket]?.remove(transfer)
        if users[socket]?.isEmpty == true { users[socket] = nil }
    }

    private func socket(of connection: Connection) -> curl_socket_t? {
        if let known = byConnection[connection] { return known }
        let known = Set(byConnection.values)
        for socket in sockets where !known.contains(socket) {
            guard let own = Self.endpoint(of: socket, getsockname), let peer = Self.endpoint(of: socket, getpeername)
            else { continue }
            byConnection[Connection(peer: peer.address, peerPort: peer.port, ownPort: own.port)] = socket
        }
        return byConnection[connection]
    }

    /// One end of a socket's connection; `nil` where there is none yet.
    private static func endpoint(
        of socket: curl_socket_t,
        _ name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> (address: String, port: UInt16)? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        var service = [CChar](repeating: 0, count: Int(NI_MAXSERV))
        let isNamed = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                name(socket, address, &length) == 0
                    && getnameinfo(
                        address, length, &host, socklen_t(host.count), &service, socklen_t(service.count),
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0
            }
        }
        let texts = [host, service].map {
            String(decoding: $0.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
        guard isNamed, let port = UInt16(texts[1]), port != 0 else { return nil }
        // libcurl's addresses have no zone.
        return (String(texts[0].prefix { $0 != "%" }), port)
    }
}
