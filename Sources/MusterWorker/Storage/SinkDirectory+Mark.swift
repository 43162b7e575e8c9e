import Glibc
import MusterCore

/// How workers notice that one name leads them to two directories: each directory says which it is.
extension SinkDirectory {
    /// The file below `.muster` that says it.
    private static let markName = "directory"
    /// Longer than any mark.
    private static let markBytes = 64

    /// What tells the directory at `path` from all others, on whatever host it is reached: 128 random bits, written by the first worker that comes. `nil`
    /// where they can be neither read nor written. Blocks.
    static func mark(at path: String) -> String? {
        do throws(SystemError) {
            let root = try Directory(path: path)
            if try root.makeDirectory(DestinationPath.reservedComponent) { try root.descriptor.synchronize() }
            let directory = try root.directory(DestinationPath.reservedComponent)
            if let known = try read(in: directory) { return known }
            return try make(in: directory)
        } catch {
            return nil
        }
    }

    /// Whether the directory with this mark stands at the sink's path, and the session's own is not in it: it came back from a crash without, or
    /// somebody deleted that. A bare mount point has no mark. Blocks.
    func lacksSession(mark: String) -> Bool {
        do throws(SystemError) {
            let muster = try Directory(path: path).directory(DestinationPath.reservedComponent)
            guard try Self.read(in: muster) == mark else { return false }
            guard try muster.status(of: session.installation) != nil else { return true }
            return try muster.directory(session.installation).status(of: session.directoryName) == nil
        } catch {
            return false
        }
    }

    /// What an open directory says of itself; `nil` where it says nothing. Blocks.
    static func mark(in root: Directory, _ path: String) throws(StorageError) -> String? {
        do throws(SystemError) {
            guard try root.status(of: DestinationPath.reservedComponent) != nil else { return nil }
            return try read(in: root.directory(DestinationPath.reservedComponent))
        } catch {
            throw error.inSink("reading which directory \(path) is")
        }
    }

    /// The directory is not the one that the sink's files are in.
    static func other(name: String, path: String) -> StorageError {
        .unavailable(
            .init(
                """
                \(path) is not the directory that the files of the sink \(name) are in: most likely that one is not mounted. Mount it; or, if it is \
                gone for good, start with --new-directory \(name)
                """))
    }

    private static func read(in directory: Directory) throws(SystemError) -> String? {
        guard try directory.status(of: markName) != nil else { return nil }
        let (file, status) = try directory.file(markName, creation: .never)
        var bytes = [UInt8](repeating: 0, count: min(markBytes, Int(status.size)))
        let count = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0) }
        }.get()
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    private static func make(in directory: Directory) throws(SystemError) -> String? {
        let (high, low) = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max))
        let mark = [high, low].map { String($0, radix: 16) }.joined(separator: "-")
        let fresh = "\(markName).\(mark)"
        let (file, _) = try directory.file(fresh, creation: .always)
        do throws(SystemError) {
            try file.write(Array(mark.utf8), at: 0)
            try file.synchronize()
            try directory.moveExclusively(fresh, to: markName, in: directory)
        } catch {
            _ = try? directory.remove(fresh)
            guard error.number == EEXIST else { throw error }
        }
        try directory.descriptor.synchronize()
        return try read(in: directory)
    }
}
