import Glibc
import Logging
import MusterAPI
import MusterCoordinator
import SystemPackage

/// The token that `get` and `up` make for their coordinator, as a file that only its user can read
/// (docs/adr/0019-pages-and-strangers.md).
///
/// The file of a data directory lasts, so that workers go on after a restart. Commands of the same user find the published file under the
/// coordinator's address. The coordinator holds that file locked: a file without a lock was left by a dead coordinator, and its token must
/// not be sent to a process that listens there now.
final class TokenFile: Sendable {
    private let descriptor: FileDescriptor
    private let path: FilePath

    private init(_ descriptor: FileDescriptor, _ path: FilePath) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        // Removed before the lock is released, so that a successor at this address never loses its own file.
        _ = unlink(path.string)
        try? descriptor.close()
    }

    /// The most bytes of a token.
    private static let limitBytes = 4_096
    /// The file's name in a data directory.
    private static let name = "token"

    /// The lasting token of a data directory; made when there is none, or when another user could have read it.
    static func lasting(in directory: FilePath) throws(CommandFailure) -> String {
        let path = directory.appending(name)
        do {
            if let token = try? read(path), token.utf8.count >= 16 { return token }
            let token = RandomToken.make()
            let fresh = directory.appending("\(name).new")
            _ = unlink(fresh.string)
            let file = try FileDescriptor.open(
                fresh, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec],
                permissions: .ownerReadWrite)
            try file.closeAfter { _ = try file.writeAll((token + "\n").utf8) }
            guard rename(fresh.string, path.string) == 0 else { throw Errno(rawValue: errno) }
            return token
        } catch {
            throw .usage("the token can't be kept in \(path): \(error)")
        }
    }

    /// Lets commands of this user find the token of a coordinator that listens at an address, until the object is gone.
    static func publish(_ token: String, at address: ListenAddress, environment: [String: String]) throws -> TokenFile {
        let directory = runtimeDirectory(environment)
        if mkdir(directory.string, 0o700) != 0, errno != EEXIST { throw Errno(rawValue: errno) }
        guard isPrivate(directory, type: S_IFDIR) else { throw Errno.notPermitted }
        let path = directory.appending(key(address.host, address.port))
        while true {
            let descriptor = try FileDescriptor.open(
                path, .readWrite, options: [.create, .noFollow, .closeOnExec], permissions: .ownerReadWrite)
            do {
                guard flock(descriptor.rawValue, LOCK_EX) == 0 else { throw Errno(rawValue: errno) }
                // The previous coordinator may have removed its file in the meantime.
                var (own, named) = (stat(), stat())
                guard fstat(descriptor.rawValue, &own) == 0 else { throw Errno(rawValue: errno) }
                guard lstat(path.string, &named) == 0, own.st_ino == named.st_ino else {
                    try descriptor.close()
                    continue
                }
                guard fchmod(descriptor.rawValue, 0o600) == 0 else { throw Errno(rawValue: errno) }
                try descriptor.resize(to: 0)
                _ = try descriptor.writeAll((token + "\n").utf8)
                return TokenFile(descriptor, path)
            } catch {
                try? descriptor.close()
                throw error
            }
        }
    }

    /// Publishes a token. If that fails, the user has to give the token to commands.
    static func published(
        _ token: String, at address: ListenAddress, environment: [String: String], logger: Logger
    ) -> TokenFile? {
        do {
            return try publish(token, at: address, environment: environment)
        } catch {
            logger.warning(
                "the token can't be published: commands need MUSTER_TOKEN", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// The token of the coordinator at a base URL, if it is a living coordinator of this user on this machine.
    static func find(server: String, environment: [String: String]) -> String? {
        guard let name = key(server: server) else { return nil }
        let directory = runtimeDirectory(environment)
        guard isPrivate(directory, type: S_IFDIR) else { return nil }
        return try? read(directory.appending(name), ofLiving: true)
    }

    /// The name of an address's file; `nil` for a server that isn't on this machine.
    private static func key(server: String) -> String? {
        guard server.lowercased().hasPrefix("http://") else { return nil }
        let authority = server.dropFirst("http://".count).prefix { $0 != "/" }
        guard
            let address = ListenAddress(
                authority.contains(where: { $0 == ":" }) ? String(authority) : "\(authority):80")
        else { return nil }
        let isLocal =
            address.host.lowercased() == "localhost" || address.host == "::1" || address.host.hasPrefix("127.")
        return isLocal ? key(address.host, address.port) : nil
    }

    private static func key(_ host: String, _ port: Int) -> String {
        "\(host.lowercased() == "localhost" ? "127.0.0.1" : host)_\(port).token"
    }

    /// A directory of this user and this boot. `XDG_RUNTIME_DIR` is missing in jobs and services although the directory is there.
    private static func runtimeDirectory(_ environment: [String: String]) -> FilePath {
        if let path = environment["XDG_RUNTIME_DIR"], path.hasPrefix("/") { return FilePath(path).appending("muster") }
        let usual = FilePath("/run/user/\(geteuid())")
        return isPrivate(usual, type: S_IFDIR) ? usual.appending("muster") : FilePath("/tmp/muster-\(geteuid())")
    }

    /// Reads a token, if no other user could have read or written its file.
    private static func read(_ path: FilePath, ofLiving: Bool = false) throws -> String {
        let descriptor = try FileDescriptor.open(path, .readOnly, options: [.noFollow, .closeOnExec, .nonBlocking])
        return try descriptor.closeAfter {
            var status = stat()
            guard fstat(descriptor.rawValue, &status) == 0, isPrivate(status, type: S_IFREG) else {
                throw Errno.notPermitted
            }
            if ofLiving, flock(descriptor.rawValue, LOCK_SH | LOCK_NB) == 0 { throw Errno.noSuchProcess }
            var buffer = [UInt8](repeating: 0, count: limitBytes)
            let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
            return String(decoding: buffer[..<count].prefix { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self)
        }
    }

    private static func isPrivate(_ path: FilePath, type: mode_t) -> Bool {
        var status = stat()
        return lstat(path.string, &status) == 0 && isPrivate(status, type: type)
    }

    private static func isPrivate(_ status: stat, type: mode_t) -> Bool {
        status.st_mode & S_IFMT == type && status.st_uid == geteuid() && status.st_mode & 0o077 == 0
    }
}

extension CoordinatorConfiguration {
    /// Whether the coordinator serves this machine only and was given no token.
    var takesOwnToken: Bool { adminToken == nil && isLoopback }

    /// Sets a token that was made for this coordinator. Its own workers get another token with fewer rights, unless they were given one.
    mutating func use(ownToken token: String) {
        adminToken = token
        if workerToken == nil { workerToken = RandomToken.make() }
    }
}
