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

    /// What is known of the content version. A file may have been put in place before the origin's answer that the database knows of, or before an
    /// older state of the database was restored: then it is other content of the same version, and is not taken.
    struct Known: Sendable {
        /// The mark of the task's file of this version and representation.
        let mark: FileMark
        /// The representation; nothing at all is known of it before an answer was reported.
        let representation: Representation
        /// The durable bytes.
        let prefix: DurablePrefix
        /// The digests that the file must have.
        let digests: [ContentDigest]

        /// Whether an open file with this mark may be the content.
        fileprivate func allows(_ found: FileMark, _ status: FileStatus) -> Bool {
            guard found.isOf(mark, status) else { return false }
            guard representation != Representation() else { return true }
            return found.validators == mark.validators && representation.size.map { $0 == status.size } ?? true
                && prefix.offset <= status.size
        }
    }

    /// Finds such a file, and makes it durable; blocks.
    ///
    /// - Parameters:
    ///   - path: the task's path.
    ///   - isNumbered: whether it may have been put at a numbered name of the path (`if-exists: rename`).
    ///   - recorded: digests to compute beside those that it must have.
    ///   - watch: stops the search and receives the progress of reading.
    /// - Returns: `nil` if there is none, or if the search was stopped.
    /// - Throws: what is wrong with the sink as a whole.
    static func find(
        _ known: Known, at path: DestinationPath, isNumbered: Bool, recorded: Set<DigestAlgorithm>,
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
                let mark = FileMark.read(file, path: path), known.allows(mark, status)
            else { continue }
            if let found = try read(file, status, place, name, known, recorded, watch) { return found }
        }
        return nil
    }

    private static func read(
        _ file: Descriptor, _ status: FileStatus, _ place: SinkPlace, _ path: DestinationPath,
        _ known: Known, _ recorded: Set<DigestAlgorithm>, _ watch: FinalizeWatch
    ) throws(StorageError) -> PlacedFile? {
        var content = DurablePrefix(offset: 0, crc: CRC32C.empty)
        var isSame = known.prefix.offset == 0
        var hasher = ContentHasher(recorded.union(known.digests.map(\.algorithm)))
        do throws(StorageError) {
            let isWhole = try ContentReader(file).read(
                ByteRange(first: status.size), of: path.string, while: watch.mayContinue
            ) { piece in
                let head = Int(min(max(0, known.prefix.offset - content.offset), Int64(piece.count)))
                if head > 0 {
                    let crc = CRC32C.extend(content.crc, UnsafeRawBufferPointer(rebasing: piece[..<head]))
                    isSame = isSame || content.offset + Int64(head) == known.prefix.offset && crc == known.prefix.crc
                }
                content = DurablePrefix(
                    offset: content.offset + Int64(piece.count), crc: CRC32C.extend(content.crc, piece))
                hasher.update(piece)
                watch.verified(content.offset)
            }
            guard isWhole, isSame else { return nil }
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
        let digests = hasher.finish()
        guard known.digests.allSatisfy({ expected in digests.contains(expected) }) else { return nil }
        try place.makeDurable(file, path)
        return PlacedFile(path: path, content: content, digests: digests)
    }
}
