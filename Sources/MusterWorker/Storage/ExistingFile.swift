import Glibc
import MusterCore

/// Judges what stands at a task's path before anything is fetched for it (`ifExists`).
///
/// The path is opened component by component without following links, as for the finished file. Nothing is changed,
/// except that a file with the content is marked as the task's (adr/0014).
///
/// The file found may be the task's own: a worker that died between the rename and its report leaves the file in place,
/// and the next lease is a fetch again if the file was one chunk. Such a lease is fenced, and looks for a `PlacedFile`
/// first. A job that would end a task because a file stands at its path (`fail`) must go on under a fenced lease: the
/// `Finalizer` decides then.
struct ExistingFile: Sendable {
    /// What stands at the path.
    enum Verdict: Hashable, Sendable {
        /// No file; its directory may be missing, too.
        case absent
        /// A regular file with the content. It is durable, so that it may be reported as finished. `digests` are those
        /// that were computed: none if size and modification time decided.
        case matches(size: Int64, digests: [ContentDigest])
        /// Anything else, or a file that can't be shown to have the content.
        case differs(reason: String)
        /// The task's own file, as it was put in place, can't be shown to have the content: it was put there in a past that the database
        /// does not know of (adr/0014).
        case overtaken(reason: String)
        /// `mayContinue` returned `false`.
        case stopped
    }

    private let sink: SinkDirectory
    private let pool: BlockingPool
    private let helpers: BlockingPool?

    /// Looks at files of one sink.
    ///
    /// - Parameters:
    ///   - pool: the threads that read files.
    ///   - helpers: threads that help to hash large files.
    init(sink: SinkDirectory, pool: BlockingPool, helpers: BlockingPool? = nil) {
        self.sink = sink
        self.pool = pool
        self.helpers = helpers
    }

    /// Compares what stands at `path` with the content that the task is to have.
    ///
    /// With digests the file is read, unless its size already differs. Without digests, size and modification time must
    /// both be known and equal, the latter in whole seconds.
    ///
    /// - Parameters:
    ///   - path: where the task's file is to stand.
    ///   - size: the content's size in bytes, if it is known.
    ///   - digests: the expected digests; all must match.
    ///   - recorded: further digests to compute if the file has to be read anyway.
    ///   - lastModified: the content's modification time in seconds since 1970, if it is known.
    ///   - mark: the mark to write to a file that matches.
    ///   - watch: stops the check and receives its progress.
    /// - Throws: `symbolicLink` when the path leads through a link, and the failures of the sink.
    func check(
        path: DestinationPath,
        size: Int64?,
        digests: [ContentDigest],
        recorded: Set<DigestAlgorithm> = [],
        lastModified: Int64?,
        mark: FileMark? = nil,
        watch: FinalizeWatch = FinalizeWatch()
    ) async throws(StorageError) -> Verdict {
        let question = Question(
            path: path,
            size: size,
            digests: digests,
            recorded: recorded,
            lastModified: lastModified,
            mark: mark,
            watch: watch
        )
        return try await pool.run { [self] () throws(StorageError) -> Verdict in
            do throws(StorageError) {
                return try judge(question)
            } catch {
                throw sink.judged(error)
            }
        }
    }

    private struct Question: Sendable {
        let path: DestinationPath
        let size: Int64?
        let digests: [ContentDigest]
        let recorded: Set<DigestAlgorithm>
        let lastModified: Int64?
        let mark: FileMark?
        let watch: FinalizeWatch
    }

    private func judge(_ question: Question) throws(StorageError) -> Verdict {
        try sink.check()
        guard question.watch.mayContinue() else { return .stopped }
        var walk = SinkWalk(sink)
        guard let place = try walk.place(of: question.path, making: false) else { return .absent }
        let file: Descriptor
        let status: FileStatus
        do {
            guard let found = try place.directory.status(of: place.name) else { return .absent }
            guard found.kind == .file else { return .differs(reason: "it is \(found.kind.name)") }
            (file, status) = try place.directory.file(place.name, creation: .never)
        } catch {
            switch error.number {
            case ENOENT: return .absent
            case ELOOP, EINVAL, ENXIO: return .differs(reason: "it is no regular file")
            case EACCES, EPERM: return .differs(reason: "it can't be read")
            default: throw error.atDestination("looking at \(question.path)")
            }
        }
        let verdict = try compare(file, status, question)
        if case .differs(let reason) = verdict, let found = FileMark.read(file, path: question.path),
            found.owner == question.mark?.owner, found.isIntact(status)
        {
            return .overtaken(reason: reason)
        }
        guard case .matches = verdict else { return verdict }
        if let mark = question.mark {
            do {
                switch try mark.adopt(file, status.identity, at: place, path: question.path) {
                case .marked: break
                case .gone: return .absent
                case .refused: return .differs(reason: "it is another task's, and can't be marked")
                }
            } catch {
                throw error.atDestination("looking at \(question.path)")
            }
        }
        try place.makeDurable(file, question.path)
        return verdict
    }

    private func compare(
        _ file: Descriptor, _ status: FileStatus, _ question: Question
    ) throws(StorageError) -> Verdict {
        if let size = question.size, status.size != size {
            return .differs(reason: "it has \(status.size) bytes instead of \(size)")
        }
        return question.digests.isEmpty ? byTime(status, question) : try byDigests(file, status, question)
    }

    private func byTime(_ status: FileStatus, _ question: Question) -> Verdict {
        guard question.size != nil, let lastModified = question.lastModified else {
            return .differs(reason: "neither a digest nor size and modification time tell whether it is the content")
        }
        guard status.modified == lastModified else {
            return .differs(reason: "it was modified at \(status.modified) instead of \(lastModified)")
        }
        return .matches(size: status.size, digests: [])
    }

    private func byDigests(
        _ file: Descriptor,
        _ status: FileStatus,
        _ question: Question
    ) throws(StorageError) -> Verdict {
        let scan = ContentScan(
            algorithms: question.recorded.union(question.digests.map(\.algorithm)),
            helpers: helpers,
            watch: question.watch
        )
        let findings: ContentScan.Findings?
        let isUnchanged: Bool
        do {
            findings = try scan.run(file, size: status.size, name: question.path.string)
            isUnchanged = try file.statusInSink(question.path.string).isUnchanged(since: status)
        } catch {
            guard case .partLost = error else { throw error }
            return .differs(reason: "it is being changed")
        }
        guard let findings else { return .stopped }
        guard isUnchanged else { return .differs(reason: "it is being changed") }
        for expected in question.digests {
            guard let found = findings.digests.first(where: { $0.algorithm == expected.algorithm }), found != expected
            else { continue }
            return .differs(
                reason: "its \(expected.algorithm.rawValue) is \(found.hexadecimal), not \(expected.hexadecimal)"
            )
        }
        return .matches(size: status.size, digests: findings.digests)
    }
}

extension SinkPlace {
    /// Makes the file there durable, with the way to it: it counts as finished from now on, whichever process wrote it (I8).
    func makeDurable(_ file: Descriptor, _ path: DestinationPath) throws(StorageError) {
        do {
            try file.synchronize()
            for directory in chain { try directory.descriptor.synchronize() }
        } catch {
            throw error.inSink("syncing \(path)")
        }
    }
}

extension Descriptor {
    /// The file's current status; a failure counts as the sink's.
    fileprivate func statusInSink(_ name: String) throws(StorageError) -> FileStatus {
        do {
            return try status()
        } catch {
            throw error.inSink("looking at \(name)")
        }
    }
}
