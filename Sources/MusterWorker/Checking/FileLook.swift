import Glibc
import MusterCore

/// Compares the file at a path with what the database knows of it; blocks, and changes nothing.
struct FileLook {
    /// What a look shows.
    enum Outcome: Hashable {
        /// The file is as it should be, as far as was looked at.
        case fine
        /// The file has its size; what its content should be is not known.
        case unproven
        /// There is something to be told.
        case told(SeenFile)
        /// The look was ended.
        case stopped
    }

    /// How much of the file was read, in bytes.
    private(set) var bytes: Int64 = 0
    private let file: CheckedFile
    private let installation: String
    private let isDeep: Bool
    private let mayTake: (Int64) -> Bool

    /// How often a file is looked at that another process replaces or writes just then. A later check sees what becomes of
    /// it.
    private static let tries = 3

    /// A look for an installation's file.
    ///
    /// - Parameters:
    ///   - isDeep: whether its content is read and compared.
    ///   - mayTake: asked before so many bytes are read; `false` ends the look.
    init(_ file: CheckedFile, installation: String, isDeep: Bool, mayTake: @escaping (Int64) -> Bool) {
        self.file = file
        self.installation = installation
        self.isDeep = isDeep
        self.mayTake = mayTake
    }

    /// Looks at the file.
    ///
    /// - Throws: what is wrong with the sink as a whole.
    mutating func run(_ walk: inout SinkWalk) throws(StorageError) -> Outcome {
        guard let path = try? DestinationPath(validating: file.path) else {
            return told(.fileUnreadable, "its path leads out of the sink")
        }
        do throws(StorageError) {
            for _ in 0..<Self.tries {
                guard let place = try walk.place(of: path, making: false) else {
                    return told(.fileMissing, "its directory is not there")
                }
                if let outcome = try look(at: place, path) { return outcome }
            }
            return .fine
        } catch {
            switch error {
            case .symbolicLink, .destinationUnusable, .denied: return told(.fileUnreadable, error.description)
            case .full, .noRoom, .unavailable, .busy, .destinationTaken, .partLost: throw error
            }
        }
    }

    private func told(_ kind: FindingKind, _ detail: String, isOwn: Bool? = nil) -> Outcome {
        .told(SeenFile(file, kind, detail, isOwn: isOwn))
    }

    /// Another task, which was removed since, put its file there: that is as wanted.
    private var replaced: Outcome { told(.fileForeign, "a task that was removed since has replaced it") }

    /// Looks at what has the name now; `nil` if another process is changing that.
    private mutating func look(at place: SinkPlace, _ path: DestinationPath) throws(StorageError) -> Outcome? {
        let opened: (descriptor: Descriptor, status: FileStatus)
        do {
            guard let found = try place.directory.status(of: place.name) else {
                return told(.fileMissing, "nothing stands there")
            }
            guard found.kind == .file else { return told(.fileChanged, "\(found.kind.name) stands there") }
            opened = try place.directory.file(place.name, creation: .never)
        } catch {
            switch error.number {
            case ENOENT, ELOOP, EINVAL, ENXIO: return nil
            default: throw error.atDestination("looking at \(path)")
            }
        }
        let status = opened.status
        let mark = FileMark.read(opened.descriptor, path: path)
        let isOurs = mark?.owner == FileMark.Owner(installation: installation, task: file.task)
        let isOwn = isOurs && mark?.isIntact(status) == true
        let isReplaced = mark?.owner.installation == installation && !isOurs && mark?.state == FileMark.State(status)
        guard status.size == file.size else {
            if isReplaced { return replaced }
            return told(.fileChanged, "it has \(status.size) bytes instead of \(file.size)", isOwn: isOwn)
        }
        var isCompared = false
        if isDeep {
            switch read(opened.descriptor, path) {
            case .same: isCompared = true
            case .unproven: break
            case .stopped: return .stopped
            case .unreadable(let reason): return told(.fileUnreadable, reason)
            case .short: return nil
            case .differs(let reason):
                // It counts only if the bytes that were read are those that stand there.
                guard let after = try? opened.descriptor.status(), after.isUnchanged(since: status),
                    let standing = try? place.directory.status(of: place.name), standing.identity == status.identity
                else { return nil }
                if isReplaced { return replaced }
                return told(.fileChanged, reason, isOwn: isOwn)
            }
        }
        if let owner = mark?.owner, owner.installation != installation {
            return told(.fileForeign, "it carries the mark of installation \(owner.installation)")
        }
        if !isCompared, isOurs, mark?.state != FileMark.State(status) {
            return told(.fileWritten, "another program has written to it")
        }
        return isDeep && !isCompared ? .unproven : .fine
    }

    /// What reading shows.
    private enum Reading {
        case same
        case differs(String)
        /// Nothing is known to compare with.
        case unproven
        /// The file has become shorter meanwhile.
        case short
        case unreadable(String)
        case stopped
    }

    private mutating func read(_ descriptor: Descriptor, _ path: DestinationPath) -> Reading {
        let expected = (file.digests ?? [:]).compactMap { name, value in
            DigestAlgorithm(rawValue: name).flatMap { ContentDigest(algorithm: $0, hexadecimal: value) }
        }
        guard file.crc != nil || !expected.isEmpty else { return .unproven }
        let (size, wantsCRC, mayTake) = (file.size, file.crc != nil, mayTake)
        var crc = CRC32C.empty
        var hasher = ContentHasher(wantsCRC ? [] : Set(expected.map(\.algorithm)))
        var count: Int64 = 0
        let isWhole: Bool
        do throws(StorageError) {
            isWhole = try ContentReader(descriptor).read(
                ByteRange(first: size),
                of: path.string,
                while: { mayTake(min(Int64(ContentReader.pieceBytes), size - count)) }
            ) { piece in
                if wantsCRC { crc = CRC32C.extend(crc, piece) } else { hasher.update(piece) }
                count += Int64(piece.count)
            }
        } catch {
            bytes += count
            if case .partLost = error { return .short }
            // A bad sector is the file's misfortune, not the sink's.
            return .unreadable(error.description)
        }
        bytes += count
        guard isWhole else { return .stopped }
        if let known = file.crc {
            return known == crc
                ? .same : .differs("its CRC32C is \(String(crc, radix: 16)) instead of \(String(known, radix: 16))")
        }
        let found = hasher.finish()
        for digest in expected {
            guard let other = found.first(where: { $0.algorithm == digest.algorithm }), other != digest else {
                continue
            }
            return .differs(
                "its \(digest.algorithm.rawValue) is \(other.hexadecimal) instead of \(digest.hexadecimal)")
        }
        return .same
    }
}
