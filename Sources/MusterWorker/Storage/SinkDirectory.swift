import Glibc
import MusterCore
import Synchronization

/// One sink as this process reaches it: a directory, held open, below which everything happens.
///
/// Tasks' files stand at their paths; Muster's own files are in `.muster/parts`. Every call below blocks on the file
/// system: make them on a `BlockingPool`. The directory is noticed to be unmounted, removed or replaced by comparing
/// what stands at its path with what is held open (F9); then everything fails as `unavailable` until `probe()` finds it
/// again.
final class SinkDirectory: Sendable {
    /// The sink's name.
    let name: String
    /// Where it is on this host.
    let path: String
    /// The part files that are open now.
    let registry = PartRegistry()

    private struct Handles {
        var root: Directory
        var parts: Directory
    }

    private let handles: Mutex<Handles>

    /// Opens the directory at `path`; makes it, and its parents, if it is missing.
    init(name: String, path: String) throws(StorageError) {
        self.name = name
        self.path = path
        do {
            let root = try Self.openOrMake(path)
            handles = Mutex(Handles(root: root, parts: try Self.openParts(in: root, making: true)))
        } catch {
            throw error.inSink("opening the sink's directory \(path)")
        }
    }

    /// The directory itself.
    var root: Directory { handles.withLock { $0.root } }

    /// `.muster/parts`.
    var parts: Directory { handles.withLock { $0.parts } }

    /// Fails as `unavailable` unless the sink's path still leads to the directory that is held open.
    func check() throws(StorageError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw SystemError.last.inSink("looking at \(path)") }
        guard FileStatus(status).identity == root.identity else {
            throw .unavailable(.init("\(path) is another directory than before: unmounted or replaced"))
        }
    }

    /// Bytes that may still be written.
    func freeBytes() throws(StorageError) -> Int64 {
        do {
            return try root.descriptor.freeBytes()
        } catch {
            throw error.inSink("asking for the free space of \(path)")
        }
    }

    /// Whether the sink can be used: a file is made, written, synced and deleted again. What a parked sink waits for.
    ///
    /// A directory that came back, or was mounted again, is taken if `.muster/parts` is in it. An empty one is not:
    /// most likely it is the bare mount point, and what is written there would be hidden by the next mount.
    func probe() throws(StorageError) {
        do {
            try check()
        } catch {
            try reopen()
        }
        do throws(SystemError) {
            let directory = try partsDirectory()
            let name = "probe.\(getpid()).\(UInt64.random(in: 0 ... .max))"
            let (file, _) = try directory.file(name, creation: .always)
            do throws(SystemError) {
                let page = [UInt8](repeating: 0x6d, count: 4_096)
                try file.write(page, at: 0)
                try file.synchronizeData()
            } catch {
                _ = try? directory.remove(name)
                throw error
            }
            _ = try directory.remove(name)
        } catch {
            throw error.inSink("probing \(path)")
        }
    }

    private func reopen() throws(StorageError) {
        do {
            let root = try Directory(path: path)
            let parts = try Self.openParts(in: root, making: false)
            handles.withLock { $0 = Handles(root: root, parts: parts) }
        } catch {
            throw error.inSink("opening the sink's directory \(path) again")
        }
        registry.spoil(.unavailable(.init("the sink was replaced since the part was opened")))
    }

    /// `.muster/parts`, made again if somebody deleted it.
    func partsDirectory() throws(SystemError) -> Directory {
        let (root, parts) = handles.withLock { ($0.root, $0.parts) }
        if try parts.descriptor.status().links > 0 { return parts }
        let fresh = try Self.openParts(in: root, making: true)
        handles.withLock { $0.parts = fresh }
        return fresh
    }

    private static func openParts(in root: Directory, making: Bool) throws(SystemError) -> Directory {
        var directory = root
        for component in [DestinationPath.reservedComponent, "parts"] {
            if making, try directory.makeDirectory(component) {
                try directory.descriptor.synchronize()
            }
            directory = try directory.directory(component)
        }
        return directory
    }

    private static func openOrMake(_ path: String) throws(SystemError) -> Directory {
        do {
            return try Directory(path: path)
        } catch {
            guard error.number == ENOENT else { throw error }
        }
        // The missing directories from the top; the one that each is made in learns of it for good.
        var parent = path.hasPrefix("/") ? "/" : "."
        var current = path.hasPrefix("/") ? "" : "."
        for component in path.split(separator: "/") {
            current += "/" + component
            if mkdir(current, 0o777) == 0 {
                try Directory(path: parent).descriptor.synchronize()
            } else if errno != EEXIST {
                throw .last
            }
            parent = current
        }
        return try Directory(path: path)
    }
}
