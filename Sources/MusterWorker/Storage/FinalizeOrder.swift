import MusterAPI
import MusterCore

/// A complete part that shall become the task's file: what a finalize lease, or a lease over a whole file, asks for.
struct FinalizeOrder: Hashable, Sendable {
    /// The task.
    var task: TaskID
    /// The content version that the part is of.
    var version: Int32
    /// The lease under which it is done (I1).
    var epoch: LeaseEpoch
    /// Where the file shall stand.
    var path: DestinationPath
    /// Its size in bytes.
    var size: Int64
    /// Its chunks with their checksums, in any order; none for an empty file.
    var chunks: [FinishedChunk]
    /// The digests that it must have.
    var expected: [ContentDigest]
    /// Digests to compute besides, only to be recorded.
    var recorded: Set<DigestAlgorithm>
    /// Whether a lease on this content version was ever lost: a fresh inode is needed (I8), and a file with this content that
    /// stands at the path may be what a predecessor put there.
    var fenced: Bool
    /// What becomes of a file that stands at the path already (`Placement+Destination.swift`).
    var ifExists: ExistingFileRule
    /// The modification time that the file gets, in seconds since 1970; `nil` leaves it as it is.
    var modificationTime: Int64?
    /// Digests that were computed from the bytes as they arrived, those whose checksums are in `chunks`. They are not computed
    /// again: that the part still has the same checksums proves that it holds the bytes that were hashed (ADR 4).
    var knownDigests: [ContentDigest]
    /// A finished file of the sink that the new one is made of, in place of the part (`Placement+Held.swift`).
    var held: DestinationPath?
    /// What the file is marked with (adr/0014); not at all, if nobody said which installation the task is of.
    var mark: FileMark?

    /// An order.
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
        installation: String? = nil
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
        mark = installation.map { FileMark(owner: .init(installation: $0, task: task), version: version) }
    }

    /// The part's name.
    var part: PartName { PartName(task, version: version) }
    /// The fresh inode's name.
    var copy: CandidateName { .own("\(epoch).copy") }
}

/// What became of an order.
enum FinalizeOutcome: Hashable, Sendable {
    /// The file stands, durable, its bytes checked (I8): at its path, or at `finished.path` where that was taken and the rule is
    /// `rename`. To be reported as `done` with `finished`.
    case inPlace(Report.Finished)
    /// The part doesn't hold what was fetched: these ranges are wrong, all of it where the size or the tiling is. The
    /// task starts over, as after a changed content. Or the file that it was to be made of is not what it was taken for.
    case corrupt([ByteRange], reason: String)
    /// The bytes are those that were fetched, but not those that the caller expects.
    case digestMismatch(expected: ContentDigest, found: ContentDigest)
    /// A file that says that it is the task's stands at the path, whole, with another content of the same version: a lease that was lost put it there, and
    /// nobody heard of it. The task starts over, as after a changed content; its next version replaces what its last one left.
    case overtaken(String)
    /// `mayContinue` said no, or a later lease took over. Nothing was put in place and there is nothing to report.
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

/// How the client of long work is kept informed, and how it stops that work.
struct FinalizeWatch: Sendable {
    /// Whether the work is still wanted: the session is trusted and the lease is held. Asked before every piece that is
    /// read, and directly before the file is put in place.
    var mayContinue: @Sendable () -> Bool
    /// Told how many bytes of the file have been read so far; called from a storage thread, for each piece.
    var verified: @Sendable (Int64) -> Void

    /// A watch; by default nobody watches and nothing stops.
    init(
        mayContinue: @escaping @Sendable () -> Bool = { true },
        verified: @escaping @Sendable (Int64) -> Void = { _ in }
    ) {
        self.mayContinue = mayContinue
        self.verified = verified
    }
}
