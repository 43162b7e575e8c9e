import Glibc
import MusterCore

/// Lets workers notice that one sink name leads them to two directories: each directory has a mark that identifies it (adr/0034).
extension SinkDirectory {
    /// The file below `.muster` that holds the mark.
    private static let markName = "directory"
    /// The most bytes that are read of the file; more than any mark has.
    private static let markBytes = 64

    /// The mark that tells the directory at `path` from all others, on every host: 128 random bits, written by the first
    /// worker that opens it. `nil` if the file holds something else. Blocks.
    static func mark(at path: String, on system: any FileSystem = Kernel()) throws(StorageError) -> String? {
        let root = try open(path, on: system)
        do throws(SystemError) {
            if try root.makeDirectory(DestinationPath.reservedComponent) { try root.descriptor.synchronize() }
            let directory = try root.directory(DestinationPath.reservedComponent)
            var found = try read(in: directory)
            if case .missing = found { found = try make(freshMark(), in: directory) }
            return if case .known(let mark) = found { mark } else { nil }
        } catch {
            throw error.inSink("reading which directory \(path) is, in \(markFile(path))")
        }
    }

    /// A new mark, for a directory that has none.
    static func freshMark() -> String {
        [UInt64.random(in: 0 ... .max), .random(in: 0 ... .max)].map { String($0, radix: 16) }.joined(separator: "-")
    }

    /// The mark of the directory at `path`; `nil` if it has none. Nothing is written. Blocks.
    static func knownMark(
        at path: String, on system: any FileSystem = Kernel()
    ) throws(StorageError) -> String? {
        let root = try open(path, on: system)
        do throws(SystemError) {
            return if case .known(let mark) = try found(in: root) { mark } else { nil }
        } catch {
            throw error.inSink("reading which directory \(path) is, in \(markFile(path))")
        }
    }

    /// Writes a mark to the directory at `path`. A damaged mark is renamed first; a valid one stays. Blocks.
    static func write(
        _ mark: String, at path: String, on system: any FileSystem = Kernel()
    ) throws(StorageError) {
        let root = try open(path, on: system)
        do throws(SystemError) {
            if try root.makeDirectory(DestinationPath.reservedComponent) { try root.descriptor.synchronize() }
            let directory = try root.directory(DestinationPath.reservedComponent)
            if case .damaged = try read(in: directory) {
                // The entry may be of any kind, even a directory.
                try directory.move(markName, to: "\(markName).\(mark).damaged", in: directory, .exclusive)
            }
            _ = try make(mark, in: directory)
        } catch {
            throw error.inSink("writing which directory \(path) is, to \(markFile(path))")
        }
    }

    /// Throws `unavailable` unless an open directory has the mark that the coordinator knows. Blocks.
    static func check(_ root: Directory, is mark: String, of name: String, at path: String) throws(StorageError) {
        let mine: Mark
        do throws(SystemError) {
            mine = try found(in: root)
        } catch {
            throw error.inSink("reading which directory \(path) is, in \(markFile(path))")
        }
        switch mine {
        case .known(mark): return
        case .damaged: throw damaged(name, path, mark)
        case .known, .missing:
            throw .unavailable(
                .init(
                    """
                    \(path) is not the directory that the files of the sink \(name) are in, by \(markFile(path)): most likely that one is not \
                    mounted. Mount it; or, if it is gone for good, start with --new-directory \(name)
                    """))
        }
    }

    /// The error for a file that holds no valid mark; it names the expected mark, if that is known.
    static func damaged(_ name: String, _ path: String, _ mark: String?) -> StorageError {
        .unavailable(
            .init(
                """
                \(markFile(path)) does not say which directory this is. \(mark.map {
                    "If the files of the sink \(name) are here, have it say \($0); or, if this" } ?? "If this")\
                 is a new directory, start with --new-directory \(name)
                """))
    }

    /// Whether the directory with this mark stands at the sink's path without the session's own directory, which was lost
    /// in a crash or deleted. A bare mount point has no mark. Blocks.
    func lacksSession(mark: String) -> Bool {
        do throws(SystemError) {
            let muster = try Directory(path: path, on: system).directory(DestinationPath.reservedComponent)
            guard case .known(mark) = try Self.read(in: muster) else { return false }
            guard try muster.status(of: session.installation) != nil else { return true }
            return try muster.directory(session.installation).status(of: session.directoryName) == nil
        } catch {
            return false
        }
    }

    private static func markFile(_ path: String) -> String {
        "\(path)/\(DestinationPath.reservedComponent)/\(markName)"
    }

    /// What the mark's file holds.
    private enum Mark {
        case known(String)
        case missing
        /// Something that no worker has written.
        case damaged
    }

    private static func found(in root: Directory) throws(SystemError) -> Mark {
        guard try root.status(of: DestinationPath.reservedComponent) != nil else { return .missing }
        return try read(in: root.directory(DestinationPath.reservedComponent))
    }

    private static func read(in directory: Directory) throws(SystemError) -> Mark {
        guard let entry = try directory.status(of: markName) else { return .missing }
        guard entry.kind == .file else { return .damaged }
        let (file, status) = try directory.file(markName, creation: .never)
        var bytes = [UInt8](repeating: 0, count: min(markBytes, Int(status.size)))
        let count = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0) }
        }.get()
        bytes.removeLast(bytes.count - count)
        // Editors add a newline.
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        let isMark = bytes.count >= 3 && bytes.allSatisfy { $0 == UInt8(ascii: "-") || Self.hexadecimal.contains($0) }
        return isMark ? .known(String(decoding: bytes, as: UTF8.self)) : .damaged
    }

    private static let hexadecimal = Set("0123456789abcdef".utf8)

    private static func make(_ mark: String, in directory: Directory) throws(SystemError) -> Mark {
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
