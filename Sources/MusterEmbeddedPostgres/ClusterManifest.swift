import SystemPackage

/// The names and sizes of all files of a cluster. They tell whether a copy, and its original, is complete.
///
/// Flipped bits on a disk are not noticed: PostgreSQL has checksums against these, which have a permanent cost.
struct ClusterManifest: Sendable, Hashable {
    /// The longest manifest, in bytes; that of a cluster with a thousand files is a tenth of it.
    private static let limitBytes = 256 * 1024

    /// A line for each file, in order.
    private let lines: [Substring]

    /// The manifest of what is in a directory.
    ///
    /// - Throws: `EmbeddedPostgresError`, also where something is neither a file nor a directory.
    init(of root: FilePath) throws {
        var lines: [Substring] = []
        var pending: [(directory: FilePath, name: String)] = [(root, "")]
        while let (directory, prefix) = pending.popLast() {
            for name in try PrivateFiles.names(in: directory) {
                let path = directory.appending(name)
                guard let status = try PrivateFiles.status(path) else { continue }
                switch status.type {
                case .directory: pending.append((path, "\(prefix)\(name)/"))
                case .regular: lines.append("\(prefix)\(name) \(status.size)")
                default: throw EmbeddedPostgresError.fileOperation("list", path: path, errno: .invalidArgument)
                }
            }
        }
        self.lines = lines.sorted()
    }

    /// The manifest that was written to a file; nil when there is none.
    init?(contentsOf path: FilePath) throws {
        guard let text = try PrivateFiles.tail(path, limitBytes: Self.limitBytes) else { return nil }
        lines = text.split(separator: "\n")
    }

    /// Writes the manifest to a file.
    func write(to path: FilePath) throws {
        try PrivateFiles.write(lines.joined(separator: "\n") + "\n", to: path)
    }
}
