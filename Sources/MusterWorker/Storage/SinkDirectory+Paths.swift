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

/// Opens the directories of tasks' paths, most of them only once: many small files share few directories, and different
/// directories share parents.
///
/// It holds few directories open, however deep the paths are: on a deep path it makes the entries of those that it has
/// passed durable, unless it only looks, and closes them. A batch that begins no order once the walk is full holds at most
/// twice its bound: an order has two paths, of the file and of the file that it is made from, and each adds half of the
/// bound.
///
/// Short-lived: a directory that is moved elsewhere while it is held open would take files along.
struct SinkWalk {
    private let root: Directory
    /// How many directories it should hold.
    private let bound: Int
    /// Whether it makes nothing durable.
    private let isLooking: Bool
    /// How many directories it has synced.
    private(set) var syncs = 0
    /// The chain of open directories by the bytes of the path; the last one is the directory at that path.
    private var known: [[UInt8]: [Directory]] = [:]
    /// Directories whose own entries, in their parents, were made durable here, since a path was too deep to hold all of
    /// its directories open.
    private var durable: Set<[UInt8]> = []
    /// How many directories were opened and not closed, also those that only places hold by now.
    private var kept = 0

    /// Whether it holds as many directories as it should: they are descriptors, which other code needs too.
    var isFull: Bool { kept >= bound }

    /// The most directories that one more path adds.
    private var reach: Int { max(1, bound / 2) }

    /// A walk that starts in the sink as it is now.
    ///
    /// - Parameter isLooking: whether no directory is made, and no file is reported as finished, at its places: then the
    ///   directories on the way need not be durable.
    init(_ sink: SinkDirectory, isLooking: Bool = false) {
        root = sink.root
        bound = sink.directories
        self.isLooking = isLooking
    }

    /// Resolves `path`; missing directories on the way are made if `making`.
    ///
    /// - Returns: `nil` when a directory is missing and may not be made.
    /// - Throws: `symbolicLink` when a component is a link or no directory.
    mutating func place(of path: DestinationPath, making: Bool) throws(StorageError) -> SinkPlace? {
        let components = try Self.components(of: path)
        guard let name = components.last else { throw .destinationUnusable(.init("an empty path")) }
        let ways = Self.ways(of: components.dropLast())
        var chain = [root]
        var depth = 0
        // The deepest directory that is open: those above it need not be, and may have been closed.
        if let last = ways.lastIndex(where: { known[$0] != nil }), let open = known[ways[last]] {
            (chain, depth) = (open, last)
        }
        var added: [[UInt8]] = []
        for index in depth..<(components.count - 1) {
            let way = ways[index + 1]
            guard
                let step = try Self.step(components[index], from: chain.last ?? root, making: making, path: path)
            else { return nil }
            if step.wasMissing { durable.remove(way) }
            if added.count >= reach {
                if !isLooking {
                    try synchronize(chain, children: ways[(index + 2 - chain.count)...(index + 1)], path)
                }
                for way in added { known[way] = nil }
                kept -= added.count
                (added, chain) = ([], [])
            }
            chain.append(step.directory)
            known[way] = chain
            added.append(way)
            kept += 1
        }
        return SinkPlace(chain: chain, name: name, directory: chain.last ?? root)
    }

    /// The bytes of the path of each directory on the way, beginning with the sink itself.
    private static func ways(of components: ArraySlice<String>) -> [[UInt8]] {
        var way: [UInt8] = []
        var ways = [way]
        for component in components {
            way += component.utf8
            way.append(UInt8(ascii: "/"))
            ways.append(way)
        }
        return ways
    }

    /// Makes the entries of the next directories on the way durable, before the directories that hold them are closed.
    private mutating func synchronize(
        _ chain: [Directory], children: ArraySlice<[UInt8]>, _ path: DestinationPath
    ) throws(StorageError) {
        for (directory, child) in zip(chain, children) where !durable.contains(child) {
            do {
                try directory.descriptor.synchronize()
            } catch {
                throw error.inSink("syncing the directories of \(path)")
            }
            durable.insert(child)
            syncs += 1
        }
    }

    /// Forgets all directories, since one turned out to be gone. They still count: files that were put in place hold them.
    mutating func forget() {
        known = [:]
        durable = []
    }

    /// Forgets all directories, once no other code holds one of them.
    mutating func startOver() {
        forget()
        kept = 0
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

    /// Opens the directory `component`; also returns whether it was missing. `nil` if it is missing and may not be made.
    private static func step(
        _ component: String,
        from directory: Directory,
        making: Bool,
        path: DestinationPath
    ) throws(StorageError) -> (directory: Directory, wasMissing: Bool)? {
        var wasMissing = false
        // Another process may remove the directory between its making and its opening, so try a few times.
        for _ in 0..<4 {
            do {
                return (try directory.directory(component), wasMissing)
            } catch {
                switch error.number {
                case ENOENT where !making: return nil
                case ENOENT: wasMissing = true
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
