import Glibc
import MusterSystem
import MusterTestSupport
import SystemPackage

/// A TCP connection to a coordinator, for what no HTTP client would send.
final class BareConnection: Sendable {
    private let descriptor: FileDescriptor

    /// Connects to a port of this machine. Reads end after `limitSeconds` at the most.
    init(url: String, limitSeconds: Int = 120) throws {
        guard let port = url.split(separator: ":").last.flatMap({ UInt16($0) }) else { throw Errno.invalidArgument }
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard number >= 0 else { throw Errno(rawValue: errno) }
        descriptor = FileDescriptor(rawValue: number)
        var limit = timeval(tv_sec: limitSeconds, tv_usec: 0)
        _ = setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Errno(rawValue: errno) }
    }

    deinit { try? descriptor.close() }

    /// Sends a text; stops when the peer has closed the connection.
    func send(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }

    /// Sends a text and reads until the peer closes the connection or is silent for too long. Runs on a thread of its own: it would block
    /// the shared threads of tasks.
    func exchange(_ text: String = "") async -> (text: String, isClosed: Bool) {
        await Self.apart { [self] in
            if !text.isEmpty { send(text) }
            return read { _ in false }
        }
    }

    /// Sends a text and reads until the head of an answer is complete.
    func answer(to text: String) async -> (text: String, isClosed: Bool) {
        await Self.apart { [self] in
            send(text)
            return read { $0.contains("\r\n\r\n") }
        }
    }

    /// Connects, sends a text and reads the answer on one thread: otherwise, on a busy machine, a pause between connecting and sending
    /// could make the coordinator close the connection.
    static func answer(to text: String, at url: String) async throws -> (text: String, isClosed: Bool) {
        try await apart {
            Result {
                let connection = try BareConnection(url: url)
                connection.send(text)
                return connection.read { $0.contains("\r\n\r\n") }
            }
        }.get()
    }

    private static func apart<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            do {
                try SystemThread { continuation.resume(returning: body()) }.detach()
            } catch {
                fatalError("no thread: \(error)")
            }
        }
    }

    private func read(until isWhole: (String) -> Bool) -> (text: String, isClosed: Bool) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = buffer.withUnsafeMutableBytes { recv(descriptor.rawValue, $0.baseAddress, $0.count, 0) }
            guard count > 0 else {
                let isReset = count < 0 && errno == ECONNRESET
                return (String(decoding: bytes, as: UTF8.self), count == 0 || isReset)
            }
            bytes += buffer[..<count]
            let text = String(decoding: bytes, as: UTF8.self)
            if isWhole(text) { return (text, false) }
        }
    }
}
