import Glibc
import Synchronization
import SystemPackage

/// Open connections that send next to nothing (F22, F23); they are closed with the object.
final class ConnectionFlood: Sendable {
    /// What the connections send.
    enum Talk: String, CaseIterable, Sendable {
        /// Nothing at all.
        case nothing
        /// The beginning of a head that never ends.
        case beginningOfHead
        /// A head, and the beginning of a body that never ends.
        case beginningOfBody

        var text: String {
            switch self {
            case .nothing: ""
            case .beginningOfHead: "GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nX-"
            case .beginningOfBody:
                """
                POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 1000000\r\n\r\n{
                """
            }
        }
    }

    private let numbers = Mutex<[Int32]>([])

    /// Opens that many connections to a port of 127.0.0.1.
    func open(_ count: Int, port: Int, saying talk: Talk) throws {
        for _ in 0..<count {
            let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            guard number >= 0 else { throw Errno(rawValue: errno) }
            numbers.withLock { $0.append(number) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(port).bigEndian
            address.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard result == 0 else { throw Errno(rawValue: errno) }
            let bytes = Array(talk.text.utf8)
            _ = send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
    }

    /// Closes all of them.
    func close() {
        let all = numbers.withLock { numbers in
            defer { numbers = [] }
            return numbers
        }
        for number in all { _ = Glibc.close(number) }
    }

    deinit { close() }

    /// Raises the limit of this process's descriptors as far as possible, and returns it.
    @discardableResult
    static func raiseLimit() -> Int {
        var limit = rlimit()
        _ = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }
}
