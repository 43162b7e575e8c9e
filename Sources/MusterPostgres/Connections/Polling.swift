import Glibc
import MusterSystem

/// Waiting for descriptors.
enum Polling {
    enum Wake: Equatable {
        /// The first descriptor can be read, written, or is broken.
        case ready
        /// Only the flag was raised.
        case flagged
        case timedOut
    }

    /// Waits until `descriptor` has one of `events`, `flag` is raised, or `deadline` has passed (for ever if `nil`).
    static func wait(
        for descriptor: Int32,
        events: Int32,
        flag: EventDescriptor,
        until deadline: ContinuousClock.Instant?
    ) -> Wake {
        while true {
            let timeout = deadline.map { ContinuousClock.now.duration(to: $0).wholeMilliseconds } ?? -1
            let found = withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2) { descriptors -> (Int32, Bool) in
                descriptors.initialize(repeating: pollfd())
                descriptors[0] = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
                descriptors[1] = pollfd(fd: flag.descriptor, events: Int16(POLLIN), revents: 0)
                let count = poll(descriptors.baseAddress, 2, timeout)
                return (count, descriptors[0].revents != 0)
            }
            switch found {
            case (let count, true) where count > 0: return .ready
            case (let count, false) where count > 0: return .flagged
            case (0, _):
                if let deadline, ContinuousClock.now < deadline { continue }
                return .timedOut
            default:
                // Interrupted by a signal: wait again for what is left of the time.
                guard errno == EINTR else { return .ready }
            }
        }
    }

    /// Whether a descriptor has something to read (or is broken) at this moment.
    static func isReadable(_ descriptor: Int32) -> Bool {
        var one = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&one, 1, 0) > 0
    }
}
