import Glibc
import MusterSystem
import Synchronization

@testable import MusterCurl

/// A TCP server that sends exactly the bytes that its script says: every connection runs the script on a thread of its own.
final class RawServer: Sendable {
    private struct Contents {
        var isStopped = false
        var descriptors: [Int32] = []
        var threads: [SystemThread] = []
        var accepted = 0
    }

    let port: UInt16
    private let listener: Int32
    private let contents = Mutex(Contents())

    /// Listens on a free port of 127.0.0.1. The script gets the connection and its number, from 0.
    init(_ script: @escaping @Sendable (RawConnection, Int) -> Void) throws {
        let (listener, port) = try listeningSocket()
        self.listener = listener
        self.port = port
        let acceptor = try SystemThread { [self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                serve(descriptor, script)
            }
        }
        contents.withLock { $0.threads.append(acceptor) }
    }

    /// How many connections came so far.
    var acceptedConnections: Int { contents.withLock { $0.accepted } }

    func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

    private func serve(_ descriptor: Int32, _ script: @escaping @Sendable (RawConnection, Int) -> Void) {
        let number: Int? = contents.withLock { contents in
            guard !contents.isStopped else { return nil }
            contents.descriptors.append(descriptor)
            contents.accepted += 1
            return contents.accepted - 1
        }
        guard let number, let thread = try? SystemThread({ script(RawConnection(descriptor), number) }) else {
            close(descriptor)
            return
        }
        contents.withLock { $0.threads.append(thread) }
    }

    /// Ends every connection and waits for every script.
    func stop() {
        let descriptors: [Int32] = contents.withLock { contents in
            contents.isStopped = true
            return contents.descriptors
        }
        shutdown(listener, Int32(SHUT_RDWR))
        for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
        while let thread = contents.withLock({ $0.threads.popLast() }) { thread.join() }
        // Closed only now, since the number of a closed descriptor may be given to another socket at once.
        for descriptor in descriptors { close(descriptor) }
        close(listener)
    }
}

/// One connection of a ``RawServer``, with blocking calls for its script.
struct RawConnection: Sendable {
    private let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Reads a request's head, up to and with its empty line; empty when the peer is gone.
    func readHead() -> String {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
            guard recv(descriptor, &byte, 1, 0) == 1 else { return "" }
            bytes.append(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads the bytes that are there, at least one; empty when the peer is gone.
    func readSome() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let got = recv(descriptor, &buffer, buffer.count, 0)
        return got > 0 ? Array(buffer[..<got]) : []
    }

    /// Reads a line, without its line break; nil when the peer is gone.
    func readLine() -> String? {
        var bytes: [UInt8] = []
        while bytes.last != 10 {
            let byte = read(1)
            guard !byte.isEmpty else { return nil }
            bytes += byte
        }
        return String(decoding: bytes.dropLast(2), as: UTF8.self)
    }

    /// Reads exactly `count` bytes, or fewer if the peer is gone.
    func read(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while bytes.count < count {
            let got = recv(descriptor, &buffer, min(buffer.count, count - bytes.count), 0)
            guard got > 0 else { break }
            bytes.append(contentsOf: buffer[..<got])
        }
        return bytes
    }

    /// Reads a chunked body to its end.
    func readChunkedBody() -> [UInt8] {
        var body: [UInt8] = []
        while true {
            var line: [UInt8] = []
            while line.last != 10 {
                let byte = read(1)
                guard !byte.isEmpty else { return body }
                line += byte
            }
            guard let size = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16) else { return body }
            body += read(size)
            _ = read(2)
            if size == 0 { return body }
        }
    }

    /// Sends everything; false if the peer is gone.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Blocks until the peer closes the connection, or the server is stopped.
    func waitForPeerToClose() {
        while !read(65536).isEmpty {}
    }

    /// Passes on everything between this connection and a new one to a port of 127.0.0.1, until both ends are done.
    func relay(toPort port: UInt16) {
        guard let other = RawConnection.connected(toPort: port) else { return finish() }
        let back = try? SystemThread { other.pass(to: self) }
        pass(to: other)
        back?.join()
        close(other.descriptor)
    }

    private func pass(to other: RawConnection) {
        var piece = readSome()
        while !piece.isEmpty, other.send(piece) { piece = readSome() }
        other.finish()
    }

    private static func connected(toPort port: UInt16) -> RawConnection? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            close(descriptor)
            return nil
        }
        return RawConnection(descriptor)
    }

    /// Ends the sending direction.
    func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Drops the connection with a RST.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        // Connecting to "nothing" disconnects a TCP socket at once, while its number stays ours.
        var nothing = sockaddr()
        nothing.sa_family = sa_family_t(AF_UNSPEC)
        connect(descriptor, &nothing, socklen_t(MemoryLayout<sockaddr>.size))
    }
}

/// The system refused something that a test needs.
struct SystemFailure: Error {
    let call: String
    let code: Int32
}

/// A socket that listens on a free port of 127.0.0.1.
func listeningSocket() throws -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw SystemFailure(call: "socket", code: errno) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
            bind(descriptor, generic, length) == 0 && listen(descriptor, 128) == 0
                && getsockname(descriptor, generic, &length) == 0 ? 0 : errno
        }
    }
    guard code == 0 else {
        close(descriptor)
        throw SystemFailure(call: "bind", code: code)
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
}
