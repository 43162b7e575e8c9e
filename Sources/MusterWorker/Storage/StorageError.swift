import Glibc
import MusterCore

/// Why a sink's storage failed to do what was asked.
///
/// Two of the cases concern the whole sink and park it (`parksSink`), one is temporary (`isPassing`); the others concern
/// one task only.
enum StorageError: Error, Hashable, Sendable {
    /// What happened.
    struct Detail: Hashable, Sendable {
        /// What was being done, in words; may name a path below the sink.
        let text: String
        /// The system's error number, where a call failed.
        let errno: Int32?

        /// A detail; without an error number if no system call failed.
        init(_ text: String, errno: Int32? = nil) {
            self.text = text
            self.errno = errno
        }
    }

    /// The sink has no room: ENOSPC or EDQUOT. Parks the sink.
    case full(Detail)
    /// The sink has room, but less than this file needs, or can't hold a file this large (F9).
    case noRoom(Detail)
    /// The sink can't be reached or written: unmounted, removed, replaced, read-only, failing. Parks the sink.
    case unavailable(Detail)
    /// The process or the system has no descriptor left, or the part is being put in place: nothing is wrong with the
    /// sink or the task, and the lease is given back.
    case busy(Detail)
    /// The system refuses an operation at the task's path: a directory has no permission for us, the file is busy, its
    /// mount is read-only. The operator can fix that.
    case denied(Detail)
    /// Something that isn't this task's file stands at its path; it is left alone (I8).
    case destinationTaken(Detail)
    /// The path can't be made in this sink, for example because a name is too long for it.
    case destinationUnusable(Detail)
    /// A component of the path is a symbolic link or no directory; links are never followed.
    case symbolicLink(Detail)
    /// The part was deleted, truncated or replaced by another process (F19), or a failed sync left its content in doubt.
    /// Its bytes have to be fetched anew.
    case partLost(Detail)

    /// What happened.
    var detail: Detail {
        switch self {
        case .full(let detail), .noRoom(let detail), .unavailable(let detail), .busy(let detail), .denied(let detail),
            .destinationTaken(let detail), .destinationUnusable(let detail), .symbolicLink(let detail),
            .partLost(let detail):
            detail
        }
    }

    /// Whether the sink as a whole is at fault, so that it has to be parked until a probe succeeds.
    var parksSink: Bool {
        switch self {
        case .full, .unavailable: true
        case .noRoom, .busy, .denied, .destinationTaken, .destinationUnusable, .symbolicLink, .partLost: false
        }
    }

    /// Whether the failure is temporary: the work is tried again as it is.
    var isPassing: Bool {
        if case .busy = self { true } else { false }
    }

    /// How the failure is reported. A lost part starts the content over; that's what `changed` does.
    var failureKind: FailureKind {
        switch self {
        case .full: .storageFull
        case .noRoom: .noSpace
        case .denied: .noPermission
        case .unavailable, .busy, .destinationTaken, .destinationUnusable, .symbolicLink: .storage
        case .partLost: .changed
        }
    }
}

extension StorageError: CustomStringConvertible {
    /// The reason in words, fit for a report's `detail`.
    var description: String {
        let reason: String? =
            switch self {
            // The kind of the failure already says so.
            case .noRoom, .denied: nil
            case .full: "the sink is full"
            case .unavailable: "the sink is unavailable"
            case .busy: "too many files are open"
            case .destinationTaken: "the destination is taken"
            case .destinationUnusable: "the destination can't be used"
            case .symbolicLink: "the path leads through something that is no plain directory"
            case .partLost: "the part file is lost"
            }
        let parts = [reason, detail.text, detail.errno.map { SystemError($0).message }]
        return parts.compactMap { $0 }.joined(separator: ": ")
    }
}

/// What a system call reported, before it is known what that means for the sink or for a task.
struct SystemError: Error, Hashable, Sendable {
    /// The error number.
    let number: Int32
    /// Whether the file system is out of inodes: no other file can be made, however many bytes are free.
    var isForInodes = false

    /// Wraps an error number.
    init(_ number: Int32) {
        self.number = number
    }

    /// The thread's current `errno`; to be taken directly after the call that set it.
    static var last: SystemError { SystemError(errno) }

    /// The system's message for it.
    var message: String {
        let words: String? = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress, strerror_r(number, start, buffer.count) == 0 else { return nil }
            return String(cString: start)
        }
        return words ?? "error \(number)"
    }

    /// Whether there is nothing at a path.
    var isAbsence: Bool { number == ENOENT || number == ENOTDIR }

    /// Whether the process or the system has no descriptor left.
    var isLackOfDescriptors: Bool { number == EMFILE || number == ENFILE }

    /// Whether the file system, or our quota on it, is full.
    var isLackOfRoom: Bool { number == ENOSPC || number == EDQUOT }

    /// What the error means for Muster's own directory and the parts in it: every error but a lack of room or of
    /// descriptors is a failure of the sink.
    func inSink(_ doing: @autoclosure () -> String) -> StorageError {
        let lack = isForInodes ? ": its file system has no inode left for another file" : ""
        let detail = StorageError.Detail(doing() + lack, errno: number)
        if isLackOfRoom { return .full(detail) }
        return isLackOfDescriptors ? .busy(detail) : .unavailable(detail)
    }

    /// What the error means at a task's own path. Except for a lack of room it is never the sink's: a probe decides
    /// whether the sink works (`SinkDirectory.judged`).
    func atDestination(_ doing: @autoclosure () -> String) -> StorageError {
        switch number {
        case ELOOP: .symbolicLink(.init(doing(), errno: number))
        case ENAMETOOLONG, EINVAL, EISDIR, ENOTDIR, EMLINK, EILSEQ, EXDEV:
            .destinationUnusable(.init(doing(), errno: number))
        case _ where isLackOfRoom || isLackOfDescriptors: inSink(doing())
        default: .denied(.init(doing(), errno: number))
        }
    }

    /// What the error means for the bytes of one part. If the file system can't hold a file this large, only the task fails.
    func inPart(_ doing: @autoclosure () -> String) -> StorageError {
        number == EFBIG ? .destinationUnusable(.init(doing(), errno: number)) : inSink(doing())
    }
}
