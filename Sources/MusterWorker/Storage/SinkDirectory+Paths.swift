import Glibc
import MusterCore

/// Where a task's file belongs: its directory, held open, and the name in it.
struct SinkPlace: Sendable {
    /// The directories on the way, ending with the one that the file is in. They begin with the sink, or, on a deep path,
    /// with the first directory below those that were made durable already.
    let chain: [Directory]
    /// The file's name.
    let name: String

    /// The directory that the file is in.
    let directory: Directory
}

/// Opens the directories of tasks' paths, each only once: many small files share few directories, and different
/// directories share parents.
///
/// Short-lived: a directory that is moved elsewhere while it is held open would take files along.
struct SinkWalk {
    private let sink: SinkDirectory
    private let root: Directory
    /// The chain of open directories by the bytes of the path; the last one is the directory at that path.
    private var known: [[UInt8]: [Directory]] = [:]
    /// Directories whose entries were made durable here, since a path was too deep to hold all of its directories open.
    private var durable: Set<[UInt8]> = []

    /// Whether it holds as many directories as it should: they are descriptors, which other code needs too.
    var isFull: Bool { known.count >= DescriptorLimit.directories }

    /// A walk that starts in the sink as it is now.
    init(_ sink: SinkDirectory) {
        self.sink = sink
        root = sink.root
    }

    /// Resolves `path`; missing directories on the way are made if `making`.
    ///
    /// - Returns: `nil` when a directory is missing and may not be made.
    /// - Throws: `symbolicLink` when a component is a link or no directory.
    mutating func place(of path: DestinationPath, making: Bool) throws(StorageError) -> SinkPlace? {
        let components = try Self.components(of: path)
        guard let name = components.last else { throw .destinationUnusable(.init("an empty path")) }
        var chain = [root]
        var way: [UInt8] = []
        var ways: [[UInt8]] = [way]
        for component in components.dropLast() {
            way += component.utf8
            way.append(UInt8(ascii: "/"))
            ways.append(way)
            if let shared = known[way] {
                chain = shared
            } else if let next = try Self.step(component, from: chain.last ?? root, making: making, path: path) {
                if chain.count >= DescriptorLimit.directories {
                    try synchronize(chain, ways: ways.dropLast().suffix(chain.count), path)
                    chain = []
                    known = [:]
                }
                chain.append(next)
                known[way] = chain
            } else {
                return nil
            }
        }
        return SinkPlace(chain: chain, name: name, directory: chain.last ?? root)
    }

    /// Makes the entries of directories durable that are about to be closed.
    private mutating func synchronize(
        _ chain: [Directory], ways: ArraySlice<[UInt8]>, _ path: DestinationPath
    ) throws(StorageError) {
        for (directory, way) in zip(chain, ways) where !durable.contains(way) {
            do {
                try directory.descriptor.synchronize()
            } catch {
                throw error.inSink("syncing the directories of \(path)")
            }
            durable.insert(way)
        }
    }

    /// Forgets all directories: there are too many, or one turned out to be gone.
    mutating func forget() {
        known = [:]
        durable = []
    }

    /// The components as the system sees them: cut at the byte `/`. Splitting by Swift's characters is unsafe: a
    /// combining mark after a slash makes one character of both, and a component with a slash in it would be a path of
    /// its own.
    private static func components(of path: DestinationPath) throws(StorageError) -> [String] {
        let components = path.string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard components.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }),
            components.first.map(DestinationPath.isReserved) == false
        else {
            throw .destinationUnusable(.init("\(path) does not stay within the sink"))
        }
        return components
    }

    private static func step(
        _ component: String,
        from directory: Directory,
        making: Bool,
        path: DestinationPath
    ) throws(StorageError) -> Directory? {
        // Another process may remove the directory between its making and its opening, so try a few times.
        for _ in 0..<4 {
            do {
                return try directory.directory(component)
            } catch {
                switch error.number {
                case ENOENT where !making: return nil
                case ENOENT: break
                case ENOTDIR, ELOOP:
                    // The system reports ENOTDIR for a link, too.
                    let isLink = (try? directory.status(of: component))?.kind == .symbolicLink
                    throw .symbolicLink(.init("\(component) in \(path)", errno: isLink ? ELOOP : ENOTDIR))
                default: throw error.atDestination("opening the directory \(component) of \(path)")
                }
            }
            do {
                _ = try directory.makeDirectory(component)
            } catch {
                throw error.atDestination("making the directory \(component) of \(path)")
            }
        }
        throw .destinationUnusable(.init("the directory \(component) of \(path) keeps vanishing"))
    }
}
