import SystemPackage

/// Which data a server was started on, to tell it from what somebody puts in its place.
struct DataIdentity: Sendable, Hashable {
    private let device: UInt64
    private let inode: UInt64

    /// The identity of what stands in a data directory; `nil` when nothing whole does.
    init?(_ dataDirectory: FilePath) throws {
        // The directory may stay when everything in it goes.
        guard let version = try PrivateFiles.status(dataDirectory.appending("PG_VERSION")) else { return nil }
        (device, inode) = (UInt64(version.deviceID.rawValue), UInt64(version.inode.rawValue))
    }
}
