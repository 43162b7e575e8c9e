#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The clock that trust is counted on: it never jumps, and it goes on while the process is stopped and while the machine
/// sleeps. A clock that stood still in a suspended machine would let a worker trust a session that ended long ago.
enum MonotonicClock {
    /// Nanoseconds since some moment before the process began.
    static func now() -> Int64 {
        var time = timespec()
        #if canImport(Darwin)
        clock_gettime(CLOCK_MONOTONIC, &time)
        #else
        clock_gettime(CLOCK_BOOTTIME, &time)
        #endif
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Waits until the clock shows `moment`, or the task is cancelled.
    static func sleep(until moment: Int64) async {
        let span = Duration.nanoseconds(max(0, moment - now()))
        try? await Task.sleep(for: span, tolerance: nil, clock: ContinuousClock())
    }
}

/// How many processors there are.
enum ProcessorCount {
    /// Those that are online; at least 1.
    static var online: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
