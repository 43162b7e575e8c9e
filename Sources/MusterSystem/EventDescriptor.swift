import CEventFD
import Glibc
public import SystemPackage

/// A descriptor (`eventfd(2)`) by which any thread wakes blocked threads.
public final class EventDescriptor: Sendable {
    /// What raising it does.
    public enum Kind: Sendable, Hashable {
        /// It is readable for `poll(2)` until it is taken once, however often it was raised.
        case flag
        /// Each raise is taken once: it wakes one waiting thread, or the next thread that would wait.
        case semaphore
    }

    /// The descriptor for `poll(2)`.
    public let descriptor: Int32

    /// Makes a descriptor that is not raised.
    ///
    /// - Throws: the system's error when it has no descriptor left.
    public init(_ kind: Kind) throws(Errno) {
        let flags = kind == .flag ? EFD_NONBLOCK : EFD_SEMAPHORE
        descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(flags))
        guard descriptor >= 0 else { throw Errno(rawValue: errno) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Raises it. Raising fails only when the counter is full, and then it is raised already.
    public func raise() {
        while eventfd_write(descriptor, 1) < 0, errno == EINTR {}
    }

    /// Takes the raises: all of a flag, without waiting; one of a semaphore, for which it waits.
    public func take() {
        var count: eventfd_t = 0
        while eventfd_read(descriptor, &count) < 0, errno == EINTR {}
    }
}
