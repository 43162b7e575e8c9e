import Glibc
import MusterCore

/// A file that an earlier lease on the same content version put in place, and did not report: its worker died, or the report was lost.
///
/// It carries the task's mark of that version, and no program has written to it since: it is what was verified before it was put there (I8, adr/0014).
/// The lease that follows takes it as it is, so that nothing is fetched twice (I16), even if the origin has nothing more to give. A file system
/// without extended attributes keeps no mark: there the content is fetched again.
struct PlacedFile: Hashable, Sendable {
    /// Where it stands.
    let path: DestinationPath
    /// All of it, with its checksum.
    let content: DurablePrefix
    /// The digests that were asked for.
    let digests: [ContentDigest]

    /// Finds such a file, and makes it durable; blocks.
    ///
    /// - Parameters:
    ///   - path: the task's path.
    ///   - isNumbered: whether it may have been put at a numbered name of the path (`if-exists: rename`).
    ///   - algorithms: the digests to compute.
    ///   - watch: stops the search and receives the progress of reading.
    /// - Returns: `nil` if there is none, or if the search was stopped.
    /// - Throws: what is wrong with the sink as a whole.
    static func find(
        _ mark: FileMark, at path: DestinationPath, isNumbered: Bool, algorithms: Set<DigestAlgorithm>,
        in sink: SinkDirectory, watch: FinalizeWatch
    ) throws(StorageError) -> PlacedFile? {
        try sink.check()
        var walk = SinkWalk(sink)
        for number in 1...(isNumbered ? 1 + Placement.numberedNames : 1) {
            guard watch.mayContinue() else { return nil }
            // What can't be opened is not that file; the fetch finds out what is wrong with the path.
            guard let name = number == 1 ? path : path.numbered(number),
                let place = try? walk.place(of: name, making: false),
                let (file, status) = try? place.directory.file(place.name, creation: .never),
                FileMark.read(file, path: path)?.isOf(mark, status) == true
            else { continue }
            if let found = try read(file, status, place, name, algorithms, watch) { return found }
        }
        return nil
    }

    private static func read(
        _ file: Descriptor, _ status: FileStatus, _ place: SinkPlace, _ path: DestinationPath,
        _ algorithms: Set<DigestAlgorithm>, _ watch: FinalizeWatch
    ) throws(StorageError) -> PlacedFile? {
        var crc = CRC32C.empty
        var count: Int64 = 0
        var hasher = ContentHasher(algorithms)
        do throws(StorageError) {
            let isWhole = try ContentReader(file).read(
                ByteRange(first: status.size), of: path.string, while: watch.mayContinue
            ) { piece in
                crc = CRC32C.extend(crc, piece)
                hasher.update(piece)
                count += Int64(piece.count)
                watch.verified(count)
            }
            guard isWhole else { return nil }
        } catch {
            // It became shorter while it was read: another program is writing it.
            guard case .partLost = error else { throw error }
            return nil
        }
        do {
            guard try file.status().isUnchanged(since: status),
                try place.directory.status(of: place.name)?.identity == status.identity
            else { return nil }
        } catch {
            throw error.inSink("looking at \(path)")
        }
        try place.makeDurable(file, path)
        return PlacedFile(
            path: path, content: DurablePrefix(offset: status.size, crc: crc), digests: hasher.finish())
    }
}
