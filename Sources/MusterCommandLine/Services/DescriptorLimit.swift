#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// How many files and connections this process may have open at once.
enum DescriptorLimit {
    /// More than any part of Muster needs. Some systems allow a billion, and programs that are started from here may look at each
    /// possible one.
    private static let most: rlim_t = 65_536

    /// Raises the soft limit to the hard one. The soft one is meant for programs that use select(2), which nothing here does.
    static func raise() {
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0 else { return }
        let wanted = min(limit.rlim_max, max(most, limit.rlim_cur))
        guard wanted > limit.rlim_cur else { return }
        limit.rlim_cur = wanted
        // A process that may not raise it goes on with what there is.
        _ = setrlimit(resource, &limit)
    }
}
