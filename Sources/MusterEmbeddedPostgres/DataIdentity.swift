import SystemPackage

/// Identifies the data that a server was started on, to notice that it was replaced.
struct DataIdentity: Sendable, Hashable {
    private let device: UInt64
    private let inode: UInt64

    /// The identity of the data in a data directory; `nil` when there is no complete data.
    init?(_ dataDirectory: FilePath) throws {
        // A file identifies it: the directory may stay when everything in it is removed.
        guard let version = try PrivateFiles.status(dataDirectory.appending("PG_VERSION")) else { return nil }
        (device, inode) = (UInt64(version.deviceID.rawValue), UInt64(version.inode.rawValue))
    }
}
