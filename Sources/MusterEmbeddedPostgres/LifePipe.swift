import Glibc
import Synchronization
import SystemPackage

/// A pipe whose reader learns by its end of file that this process hung up or died, in whatever way.
///
/// Nothing is ever written to it. The write end stays in this process alone: it is closed in every child.
final class LifePipe: Sendable {
    /// The end for the child.
    let readEnd: FileDescriptor
    private let writeEnd: Mutex<FileDescriptor?>

    init() throws {
        let ends = try FileDescriptor.pipe()
        for end in [ends.readEnd, ends.writeEnd] {
            guard fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) == 0 else { throw Errno(rawValue: errno) }
        }
        self.readEnd = ends.readEnd
        self.writeEnd = Mutex(ends.writeEnd)
    }

    /// Closes the write end; a second time does nothing.
    func hangUp() {
        writeEnd.withLock { end in
            // A pipe's end has nothing to flush, so that a failing close has closed it too.
            try? end?.close()
            end = nil
        }
    }

    deinit { hangUp() }
}
