import CEventFD
import Glibc
public import SystemPackage

/// A descriptor (`eventfd(2)`) by which any thread wakes threads that block.
public final class EventDescriptor: Sendable {
    /// What raising it does.
    public enum Kind: Sendable, Hashable {
        /// It can be read, as `poll(2)` tells, until it is taken once, however often it was raised.
        case flag
        /// Each raise is taken once: one thread that waits is woken, or the next one that would wait.
        case semaphore
    }

    /// What to give to `poll(2)`.
    public let descriptor: Int32

    /// Makes one that nobody has raised.
    ///
    /// - Throws: what the system says when it has no descriptor left.
    public init(_ kind: Kind) throws(Errno) {
        let flags = kind == .flag ? EFD_NONBLOCK : EFD_SEMAPHORE
        descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(flags))
        guard descriptor >= 0 else { throw Errno(rawValue: errno) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Raises it. It can only fail when the counter is full, and then it is raised already.
    public func raise() {
        while eventfd_write(descriptor, 1) < 0, errno == EINTR {}
    }

    /// Takes what was raised: all of it of a flag, and at once; one of a semaphore, for which it waits.
    public func take() {
        var count: eventfd_t = 0
        while eventfd_read(descriptor, &count) < 0, errno == EINTR {}
    }
}
