import CLibisal
import Glibc

/// Wakes one waiting thread for each ring; rings are counted, none is lost.
final class ThreadBell: Sendable {
    private let descriptor: Int32

    /// A bell that nobody has rung.
    init() throws(SystemError) {
        descriptor = muster_eventfd(0, MUSTER_EFD_CLOEXEC | MUSTER_EFD_SEMAPHORE)
        guard descriptor >= 0 else { throw .last }
    }

    deinit {
        close(descriptor)
    }

    /// Wakes one who waits, or the next who would.
    func ring() {
        var one: UInt64 = 1
        while write(descriptor, &one, 8) < 0, errno == EINTR {}
    }

    /// Waits for a ring that nobody else took.
    func wait() {
        var one: UInt64 = 0
        while read(descriptor, &one, 8) < 0, errno == EINTR {}
    }
}
