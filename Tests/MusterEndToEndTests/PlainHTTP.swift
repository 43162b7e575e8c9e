import Glibc
import SystemPackage

/// One request over a bare socket: to see the very bytes of an answer, which typed clients hide.
enum PlainHTTP {
    /// An answer.
    struct Answer: Sendable {
        /// Its status.
        let status: Int
        /// The lines of its head after the first one.
        let fields: [String]
        /// Its body.
        let body: String

        /// The value of a field, whatever the case of its name.
        func header(_ name: String) -> String? {
            let prefix = name.lowercased() + ":"
            guard let line = fields.first(where: { $0.lowercased().hasPrefix(prefix) }) else { return nil }
            return String(line.dropFirst(prefix.count).drop { $0 == " " })
        }
    }

    /// Sends a GET to 127.0.0.1 and reads until the server closes the connection, for 20 s at the most.
    ///
    /// It blocks its thread: the tests run one after the other, and a coordinator answers soon.
    static func get(port: Int, path: String) throws -> Answer {
        var hints = addrinfo()
        hints.ai_family = AF_INET
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo("127.0.0.1", String(port), &hints, &found) == 0, let address = found else {
            throw Unexpected("127.0.0.1 is no address")
        }
        defer { freeaddrinfo(found) }
        let number = socket(address.pointee.ai_family, streamType, 0)
        guard number >= 0 else { throw Errno(rawValue: errno) }
        return try FileDescriptor(rawValue: number).closeAfter {
            var limit = timeval(tv_sec: 20, tv_usec: 0)
            _ = setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            guard connect(number, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0 else {
                throw Errno(rawValue: errno)
            }
            let descriptor = FileDescriptor(rawValue: number)
            try descriptor.writeAll("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".utf8)
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                if count == 0 { return try parse(bytes) }
                bytes += buffer[..<count]
            }
        }
    }

    private static func parse(_ bytes: [UInt8]) throws -> Answer {
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else {
            throw Unexpected("an answer without an end")
        }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n").map(String.init)
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count > 1, let status = Int(words[1]) else { throw Unexpected("an answer without a status") }
        return Answer(
            status: status,
            fields: Array(lines.dropFirst()),
            body: String(decoding: bytes[end.upperBound...], as: UTF8.self)
        )
    }

    private static var streamType: Int32 {
        Int32(SOCK_STREAM.rawValue)
    }
}
