import CLibcurl

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The sockets of a loop's connections, so that one can be looked at before it is used again: libcurl 7.88 sends a request on a connection on which
/// more has come than the answer to the request before, and takes that for the answer (range contract, row 28). It belongs to the loop's thread.
final class OpenSockets {
    private var sockets: Set<curl_socket_t> = []
    private var byPort: [UInt16: curl_socket_t] = [:]

    /// A socket was opened for libcurl.
    func opened(_ socket: curl_socket_t) {
        sockets.insert(socket)
    }

    /// libcurl needs a socket no more: closes it.
    func close(_ socket: curl_socket_t) -> Int32 {
        sockets.remove(socket)
        if let known = byPort.first(where: { $0.value == socket }) { byPort[known.key] = nil }
        #if canImport(Glibc)
        return Glibc.close(socket)
        #elseif canImport(Musl)
        return Musl.close(socket)
        #else
        return Darwin.close(socket)
        #endif
    }

    /// Whether something has come on the connection of that local port that nobody has read. The end of a connection is nothing of that kind: libcurl
    /// sees it by itself.
    func hasUnread(at port: UInt16) -> Bool {
        guard let socket = socket(at: port) else { return false }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    private func socket(at port: UInt16) -> curl_socket_t? {
        if let known = byPort[port] { return known }
        let known = Set(byPort.values)
        for socket in sockets where !known.contains(socket) {
            guard let own = Self.port(of: socket), own != 0 else { continue }
            byPort[own] = socket
        }
        return byPort[port]
    }

    private static func port(of socket: curl_socket_t) -> UInt16? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &address) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> UInt16? in
                guard getsockname(socket, address, &length) == 0 else { return nil }
                switch Int32(address.pointee.sa_family) {
                case AF_INET:
                    return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                        UInt16(bigEndian: $0.pointee.sin_port)
                    }
                case AF_INET6:
                    return address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                        UInt16(bigEndian: $0.pointee.sin6_port)
                    }
                default: return nil
                }
            }
        }
    }
}
