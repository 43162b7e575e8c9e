import FoundationEssentials
import Glibc
import MusterTestSupport
import SystemPackage

/// Files of one size in a directory of their own, which a real nginx serves.
final class OriginFiles: Sendable {
    /// The server.
    let server: NginxServer
    /// The files' names.
    let names: [String]
    /// The size of each file in bytes.
    let size: Int64
    /// The path over which the server is far away, if there is one.
    private let path: DistantPath?
    private let directory: TemporaryDirectory

    /// The common beginning of all URLs, without a slash at the end.
    var url: String { path?.url ?? server.url }
    /// The URLs, in the order of the names.
    var urls: [String] { names.map { "\(url)/\($0)" } }
    /// The bytes of all files together.
    var totalBytes: Int64 { size * Int64(names.count) }

    /// Makes the files, and waits until they are on storage, so that no measurement includes that.
    ///
    /// - Parameters:
    ///   - isShared: Whether all names are links to one file, which saves room.
    ///   - limitRate: Bytes per second and connection; nil is no limit.
    ///   - isLogged: Whether the server logs requests.
    ///   - distance: How far away the server is.
    init(
        _ bench: Bench, count: Int, size: Int64, isShared: Bool = false, limitRate: Int? = nil, isLogged: Bool = false,
        distance: Distance? = nil
    ) async throws {
        directory = try bench.directory()
        self.size = size
        names = (0..<count).map { "f\($0).bin" }
        let content = Self.content(bytes: Int(min(size, 1 << 20)))
        for (index, name) in names.enumerated() {
            let path = directory.path.appending(name)
            if isShared, index > 0 {
                guard link(directory.path.appending(names[0]).string, path.string) == 0 else {
                    throw Errno(rawValue: errno)
                }
            } else {
                try Self.fill(path, with: content, size: size)
            }
        }
        try await bench.flush(directory.path)
        server = try await NginxServer.start(
            documentRoot: directory.path, limitRate: limitRate,
            serverDirectives: isLogged ? "" : "access_log off;")
        path = try await distance?.path(to: server.port)
    }

    /// Lines of a manifest that puts the first files, or all of them, below a directory of the sink.
    func manifest(below prefix: String, first count: Int? = nil) -> String {
        zip(urls, names).prefix(count ?? names.count).map { url, name in
            "{\"urls\":[\"\(url)\"],\"path\":\"\(prefix)/\(name)\"}\n"
        }.joined()
    }

    /// Where a served file is.
    func path(_ name: String) -> FilePath { directory.path.appending(name) }

    /// Serves one more file, and returns its URL.
    func put(_ name: String, _ content: String) throws -> String {
        try Bench.write(content.utf8, to: path(name))
        return "\(url)/\(name)"
    }

    private static func fill(_ path: FilePath, with content: [UInt8], size: Int64) throws {
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
        try file.closeAfter {
            var left = size
            while left > 0 {
                let piece = Int(min(left, Int64(content.count)))
                try content.withUnsafeBytes { _ = try file.writeAll(UnsafeRawBufferPointer(rebasing: $0[..<piece])) }
                left -= Int64(piece)
            }
        }
    }

    /// Incompressible bytes.
    private static func content(bytes: Int) -> [UInt8] {
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        return (0..<bytes).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 32)
        }
    }
}

/// The distance of a server.
struct Distance: Sendable {
    /// The least time that an answer takes.
    var roundTrip: Duration
    /// The share of packets that are lost, from 0 to 1.
    var loss = 0.0

    /// Opens a path of this distance to a port.
    func path(to port: Int) async throws -> DistantPath {
        let rate = loss > 0 ? DistantPath.rate(atLoss: loss, roundTrip: roundTrip) : nil
        return try await DistantPath.open(to: port, roundTrip: roundTrip, bytesPerSecond: rate)
    }
}
