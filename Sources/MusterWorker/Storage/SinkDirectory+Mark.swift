import Glibc
import MusterCore

/// How workers notice that one name leads them to two directories: each directory says which it is (adr/0034).
extension SinkDirectory {
    /// The file below `.muster` that says it.
    private static let markName = "directory"
    /// Longer than any mark.
    private static let markBytes = 64

    /// What tells the directory at `path` from all others, on whatever host it is reached: 128 random bits, written by the first worker that comes. `nil`
    /// where the file says something else. Blocks.
    static func mark(at path: String) throws(StorageError) -> String? {
        let root = try open(path)
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

    /// What a directory may say of itself that says nothing.
    static func freshMark() -> String {
        [UInt64.random(in: 0 ... .max), .random(in: 0 ... .max)].map { String($0, radix: 16) }.joined(separator: "-")
    }

    /// The mark that a directory has, or has none of; nothing is written. Blocks.
    static func knownMark(at path: String) throws(StorageError) -> String? {
        let root = try open(path)
        do throws(SystemError) {
            return if case .known(let mark) = try found(in: root) { mark } else { nil }
        } catch {
            throw error.inSink("reading which directory \(path) is, in \(markFile(path))")
        }
    }

    /// Has the directory at `path` say this of itself, in the place of what it says that is no mark. Blocks.
    static func write(_ mark: String, at path: String) throws(StorageError) {
        let root = try open(path)
        do throws(SystemError) {
            if try root.makeDirectory(DestinationPath.reservedComponent) { try root.descriptor.synchronize() }
            let directory = try root.directory(DestinationPath.reservedComponent)
            if case .damaged = try read(in: directory) {
                // It may be anything, a directory too.
                try directory.move(markName, to: "\(markName).\(mark).damaged", in: directory, .exclusive)
            }
            _ = try make(mark, in: directory)
        } catch {
            throw error.inSink("writing which directory \(path) is, to \(markFile(path))")
        }
    }

    /// Fails as `unavailable` unless an open directory says of itself what the coordinator knows. Blocks.
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

    /// The file does not say which directory it is in, and what it had to say, as far as that is known.
    static func damaged(_ name: String, _ path: String, _ mark: String?) -> StorageError {
        .unavailable(
            .init(
                """
                \(markFile(path)) does not say which directory this is. \(mark.map {
                    "If the files of the sink \(name) are here, have it say \($0); or, if this" } ?? "If this")\
                 is a new directory, start with --new-directory \(name)
                """))
    }

    /// Whether the directory with this mark stands at the sink's path, and the session's own is not in it: it came back from a crash without, or
    /// somebody deleted that. A bare mount point has no mark. Blocks.
    func lacksSession(mark: String) -> Bool {
        do throws(SystemError) {
            let muster = try Directory(path: path).directory(DestinationPath.reservedComponent)
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

    /// What the file says.
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
        // As editors leave it.
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
