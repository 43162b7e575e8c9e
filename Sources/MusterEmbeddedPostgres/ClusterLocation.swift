import Glibc
import SystemPackage

/// Where the files of a cluster are.
///
/// `root` belongs to the user of the process and holds `data`, `log` and `run`, which belong to the server's account,
/// and besides them only the lock files, the log of the start, and room that is kept for the server.
struct ClusterLocation: Sendable, Hashable {
    /// The directory of everything: `<state>/pg`, or a directory elsewhere that `pointer` names.
    let root: FilePath
    /// The file in the state directory that has to name `root`, where that is outside of the state directory.
    let pointer: FilePath?

    /// The data directory. It exists only when it is whole.
    var dataDirectory: FilePath { root.appending("data") }
    /// The directory of the server's rotated logs.
    var logDirectory: FilePath { root.appending("log") }
    /// What the server prints before its log collector runs, and what the supervisor prints; of the last start only.
    var startLog: FilePath { root.appending("start.log") }
    /// The file that keeps room for the server (`SpaceReserve`).
    var reserve: FilePath { root.appending("reserve") }
    /// Locked by the process that uses the cluster, for as long as it does.
    var ownerLock: FilePath { root.appending("owner.lock") }
    /// Locked by the supervisor of the server, for as long as it lives.
    var supervisionLock: FilePath { root.appending("supervision.lock") }

    /// The longest path of a socket: 107 bytes and the final zero fill `sun_path` (unix(7)).
    static let socketPathLimitBytes = 107
    /// The longest path of a root below which the server's own files fit: the server's paths are limited to 1,023 bytes,
    /// and it ends when a path is longer.
    static let rootPathLimitBytes = 900
    /// The name of the server's socket in the socket directory.
    static let socketName = ".s.PGSQL.5432"

    /// Decides where the cluster of a state directory is.
    ///
    /// It is inside of the state directory, unless its path is too long for a server, or the server's account differs from
    /// that of this process and cannot reach the place, as below a directory of mode 0700. Then the files go to
    /// `fallback/pg-<hash of the state directory>`, and a pointer file in the state directory names that place from then
    /// on, wherever the state directory is moved. The cluster does not belong to a copy of the state directory.
    static func resolve(
        stateDirectory: FilePath,
        account: ServerAccount,
        fallback: FilePath
    ) async throws -> ClusterLocation {
        let inside = stateDirectory.appending("pg")
        _ = try PrivateFiles.makeDirectoryIfMissing(inside, permissions: 0o755)
        let pointer = inside.appending("location")
        if let text = try PrivateFiles.tail(pointer, limitBytes: 8 * 1024) {
            let location = ClusterLocation(root: FilePath(String(text.prefix { $0 != "\n" })), pointer: pointer)
            guard try PrivateFiles.status(location.dataDirectory) != nil else {
                throw EmbeddedPostgresError.dataMissing(dataDirectory: location.dataDirectory, pointer: pointer)
            }
            if let original = try location.otherHome(than: stateDirectory) {
                throw EmbeddedPostgresError.copied(
                    stateDirectory: stateDirectory, original: original, dataDirectory: location.dataDirectory,
                    pointer: pointer)
            }
            return location
        }
        let local = ClusterLocation(root: inside, pointer: nil)
        if try PrivateFiles.status(local.dataDirectory) != nil { return local }
        if inside.string.utf8.count <= rootPathLimitBytes, try await canReach(inside, account: account) { return local }

        // The inode tells apart a state directory that stood at the same path before, and was moved away.
        let inode = try PrivateFiles.status(inside).map { "\($0.inode.rawValue)" } ?? ""
        let outside = fallback.appending("pg-\(hash(of: "\(stateDirectory) \(inode)"))")
        try PrivateFiles.makePassage(outside)
        return ClusterLocation(root: outside, pointer: pointer)
    }

    /// The file that names the state directory of the cluster, where the cluster is outside of it.
    private var home: FilePath { root.appending("home") }

    /// A state directory other than this one that the cluster belongs to, if that still exists and points to the cluster.
    private func otherHome(than stateDirectory: FilePath) throws -> FilePath? {
        guard let text = try PrivateFiles.tail(home, limitBytes: 8 * 1024) else { return nil }
        let other = FilePath(String(text.prefix { $0 != "\n" }))
        func pointing(_ state: FilePath) throws -> Stat? {
            let pointer = state.appending("pg/location")
            let text = try? PrivateFiles.tail(pointer, limitBytes: 8 * 1024)
            return text == "\(root)\n" ? try PrivateFiles.status(pointer) : nil
        }
        guard let there = try pointing(other), let here = try pointing(stateDirectory) else { return nil }
        // Two paths may lead to the same directory.
        return (there.deviceID, there.inode) == (here.deviceID, here.inode) ? nil : other
    }

    /// Notes which state directory the cluster belongs to. The caller holds the owner's lock.
    func settle(_ stateDirectory: FilePath) throws {
        let text = "\(stateDirectory)\n"
        guard pointer != nil, try PrivateFiles.tail(home, limitBytes: 8 * 1024) != text else { return }
        try PrivateFiles.write(text, to: home)
    }

    /// Chooses the socket directory, and makes it: `run` in the cluster's root if the socket's path is short enough
    /// there, else `/tmp/muster-<hash of the root>`.
    func makeSocketDirectory(account: ServerAccount) throws -> FilePath {
        var directory = root.appending("run")
        if !Self.canHoldSocket(directory) {
            directory = FilePath("/tmp/muster-\(Self.hash(of: root.string))")
        }
        // Below the root no other user makes this directory, and no live server uses what is in it.
        if directory.starts(with: root) {
            try PrivateFiles.refuseOther(than: directory)
            if account.needsSwitch, try PrivateFiles.status(directory) != nil {
                try PrivateFiles.give(directory, to: account)
            }
        }
        try PrivateFiles.makePrivateDirectory(directory, account: account)
        return directory
    }

    /// Removes a socket directory that is not inside of the root, if nothing is in it any more.
    func removeSocketDirectory(_ directory: FilePath) {
        guard !directory.starts(with: root) else { return }
        // Errors don't matter: the directory may be in use, or another process may have removed it.
        _ = rmdir(directory.string)
    }

    /// Whether a socket's path fits, and has no special meaning in `unix_socket_directories` and in libpq's `host`, both of
    /// which take lists separated by commas.
    private static func canHoldSocket(_ directory: FilePath) -> Bool {
        let path = directory.appending(socketName).string
        let isPlain = path.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default:
                "/._-+@:=~".utf8.contains(byte) || byte >= 0x80
            }
        }
        return isPlain && path.utf8.count <= socketPathLimitBytes
    }

    /// Whether an account can enter a directory. A process of that account asks the kernel, so that every kind of
    /// permission counts.
    static func canReach(_ directory: FilePath, account: ServerAccount) async throws -> Bool {
        guard account.needsSwitch else { return true }
        let check = PostgresTool(
            path: "/bin/sh",
            arguments: ["-c", "cd -- \"$1\"", "sh", directory.string],
            account: account
        )
        return try await check.run().succeeded
    }

    /// FNV-1a, 64 bits: it names directories, and protects nothing.
    static func hash(of text: String) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in text.utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension PrivateFiles {
    /// Makes a directory unless it exists; one that exists is left as it is.
    static func makeDirectoryIfMissing(_ path: FilePath, permissions: CInterop.Mode) throws -> Bool {
        guard try status(path) == nil else { return false }
        return try makeDirectory(path, permissions: permissions)
    }

    /// Makes a directory of mode 0700 that belongs to an account, or makes sure that an existing directory is such.
    ///
    /// In a place that every user can write to, another user may have made it first, to read what goes through it.
    static func makePrivateDirectory(_ path: FilePath, account: ServerAccount) throws {
        let isNew = try makeDirectory(path, permissions: 0o700)
        guard let found = try status(path) else {
            throw EmbeddedPostgresError.fileOperation("stat", path: path, errno: .noSuchFileOrDirectory)
        }
        guard found.type == .directory else {
            throw EmbeddedPostgresError.socketDirectoryRefused(path: path, reason: "it is not a directory")
        }
        // A crash may have left a directory that root made before it was given to the account.
        if account.needsSwitch, isNew || found.userID.rawValue == 0 {
            try give(path, to: account)
        } else if found.userID.rawValue != account.userID {
            throw EmbeddedPostgresError.socketDirectoryRefused(
                path: path,
                reason: "it belongs to the user with id \(found.userID.rawValue)"
            )
        }
        guard found.permissions.rawValue & 0o077 == 0 else {
            throw EmbeddedPostgresError.socketDirectoryRefused(path: path, reason: "others have access to it")
        }
    }
}
