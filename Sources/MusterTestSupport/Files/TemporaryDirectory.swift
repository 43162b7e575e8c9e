import FoundationEssentials
import Glibc
public import SystemPackage

/// A new, empty directory, which is removed with everything in it when this object is freed, or when the test process
/// ends in whatever way.
public final class TemporaryDirectory: Sendable {
    /// Where it is. A short path, so that Unix sockets fit below it.
    public let path: FilePath
    private let removal: Removal

    enum Removal: Sendable {
        /// By `deinit`.
        case atOnce
        /// By the reaper, once no PostgreSQL runs in it any more.
        case afterServer
    }

    /// Makes it below `/tmp`, or in another directory.
    ///
    /// - Parameters:
    ///   - permissions: By default other accounts can reach the contents, as a server that does not run as root needs;
    ///     0700 is what `mktemp -d` makes.
    public convenience init(
        in parent: FilePath = "/tmp",
        permissions: FilePermissions = [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute]
    ) throws {
        try self.init(in: parent, permissions: permissions, removal: .atOnce)
    }

    init(in parent: FilePath, permissions: FilePermissions, removal: Removal) throws {
        let suffix = String(UInt64.random(in: .min ... .max), radix: 36)
        self.path = parent.appending("mt-\(suffix)")
        self.removal = removal
        guard mkdir(path.string, 0o700) == 0, chmod(path.string, permissions.rawValue) == 0 else {
            throw Errno(rawValue: errno)
        }
        Reaper.shared.tell(.remove(path))
    }

    deinit {
        switch removal {
        case .atOnce:
            do {
                try FileManager.default.removeItem(atPath: path.string)
                Reaper.shared.tell(.forgetPath(path))
            } catch {
                // The reaper removes at the end what cannot be removed now, because a process still writes to it.
                print("\(path) is removed later: \(error)")
            }
        case .afterServer:
            Reaper.shared.tell(.removeNow(path))
        }
    }
}
