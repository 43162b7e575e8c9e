import MusterAPI
import MusterCore

/// A complete part that is to become the task's file: what a finalize lease, or a lease over a whole file, asks for.
struct FinalizeOrder: Hashable, Sendable {
    /// The task.
    var task: TaskID
    /// The content version that the part is of.
    var version: Int32
    /// The lease under which it is done (I1).
    var epoch: LeaseEpoch
    /// Where the file is to stand.
    var path: DestinationPath
    /// Its size in bytes.
    var size: Int64
    /// Its chunks with their checksums, in any order; none for an empty file.
    var chunks: [FinishedChunk]
    /// The digests that it must have.
    var expected: [ContentDigest]
    /// Further digests to compute, only to be recorded.
    var recorded: Set<DigestAlgorithm>
    /// Whether a lease on this content version was ever lost. If so, a fresh inode is needed (I8), and a file with this
    /// content at the path may have been put there by a predecessor.
    var fenced: Bool
    /// What to do about a file that already stands at the path (`Placement+Destination.swift`).
    var ifExists: ExistingFileRule
    /// The modification time that the file gets, in seconds since 1970; `nil` leaves it as it is.
    var modificationTime: Int64?
    /// Digests that were computed from the bytes as they arrived. They are not computed again: if the part still has the
    /// checksums in `chunks`, it holds the bytes that were hashed (ADR 4).
    var knownDigests: [ContentDigest]
    /// A finished file of the sink to make the new one from, instead of the part (`Placement+Held.swift`).
    var held: DestinationPath?
    /// The mark for the file (adr/0014); `nil` if the installation of the task is unknown.
    var mark: FileMark?

    /// An order; its mark follows from `installation`, `task`, `version` and `representation`.
    init(
        task: TaskID,
        version: Int32,
        epoch: LeaseEpoch,
        path: DestinationPath,
        size: Int64,
        chunks: [FinishedChunk],
        expected: [ContentDigest] = [],
        recorded: Set<DigestAlgorithm> = [],
        fenced: Bool,
        ifExists: ExistingFileRule = .verify,
        modificationTime: Int64? = nil,
        knownDigests: [ContentDigest] = [],
        held: DestinationPath? = nil,
        installation: String? = nil,
        representation: Representation = Representation()
    ) {
        self.task = task
        self.version = version
        self.epoch = epoch
        self.path = path
        self.size = size
        self.chunks = chunks
        self.expected = expected
        self.recorded = recorded
        self.fenced = fenced
        self.ifExists = ifExists
        self.modificationTime = modificationTime
        self.knownDigests = knownDigests
        self.held = held
        mark = installation.map {
            FileMark(owner: .init(installation: $0, task: task), version: version, representation: representation)
        }
    }

    /// The part's name.
    var part: PartName { PartName(task, version: version) }
    /// The fresh inode's name.
    var copy: CandidateName { .own("\(epoch).copy") }
}

/// What became of an order.
enum FinalizeOutcome: Hashable, Sendable {
    /// The file is in place, durable and verified (I8): at its path, or at `finished.path` if that was taken and the rule
    /// is `rename`. To be reported as `done` with `finished`.
    case inPlace(Report.Finished)
    /// The part doesn't hold what was fetched: these ranges are wrong, or the whole file if the size or the tiling is
    /// wrong. The task starts over, as after a changed content. The same if the `held` file doesn't have the expected
    /// content.
    case corrupt([ByteRange], reason: String)
    /// The bytes are those that were fetched, but not those that the caller expects.
    case digestMismatch(expected: ContentDigest, found: ContentDigest)
    /// An intact file at the path is marked as the task's, but has another content of the same version: the job of a lost
    /// lease put it there and could not report it. The task starts over, as after a changed content; its next version
    /// replaces that file.
    case overtaken(String)
    /// `mayContinue` returned `false`, or a later lease took over. Nothing was put in place and there is nothing to report.
    case stopped

    /// The failure to report, if it is one.
    var failure: Report.Failure? {
        switch self {
        case .inPlace, .stopped: nil
        case .corrupt(_, let reason), .overtaken(let reason): Report.Failure(kind: .changed, detail: reason)
        case .digestMismatch(let expected, let found):
            Report.Failure(
                kind: .digestMismatch,
                detail: "\(expected.algorithm.rawValue) is \(found.hexadecimal), not \(expected.hexadecimal)"
            )
        }
    }
}

/// Reports the progress of long work to its client, and lets the client stop it.
struct FinalizeWatch: Sendable {
    /// Whether the work is still wanted: the session is trusted and the lease is held. Asked before every piece that is
    /// read, and directly before the file is put in place.
    var mayContinue: @Sendable () -> Bool
    /// Told how many bytes of the file have been read so far; called from a storage thread, for each piece.
    var verified: @Sendable (Int64) -> Void

    /// A watch; by default progress is ignored and nothing stops the work.
    init(
        mayContinue: @escaping @Sendable () -> Bool = { true },
        verified: @escaping @Sendable (Int64) -> Void = { _ in }
    ) {
        self.mayContinue = mayContinue
        self.verified = verified
    }
}
