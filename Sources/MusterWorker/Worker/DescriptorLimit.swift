import Glibc

/// How many files and connections this process may have open at once.
public enum DescriptorLimit {
    /// More than any part of Muster needs. Some systems allow a billion, and child processes may loop over every possible
    /// descriptor.
    private static let most: rlim_t = 65_536
    /// Descriptors that threads, loops, the log, the calls to coordinators and, in `get`, the coordinator itself need.
    private static let reserved = 96

    /// Raises the soft limit to the hard one, at most to `most`. A low soft limit is meant for programs that use
    /// select(2), which Muster doesn't.
    public static func raise() {
        guard var limit = read() else { return }
        let wanted = min(limit.rlim_max, max(most, limit.rlim_cur))
        guard wanted > limit.rlim_cur else { return }
        limit.rlim_cur = wanted
        // If the process may not raise the limit, it keeps the current one.
        _ = setrlimit(resource, &limit)
    }

    /// The current limit of open descriptors.
    public static var current: Int { read().map { Int(clamping: $0.rlim_cur) } ?? 1_024 }

    /// How many transfers may run at once. Each needs a part file, a connection, perhaps an idle connection, and the
    /// files of earlier transfers that are not durable yet. The process must not run out of descriptors: some system
    /// libraries terminate it then.
    ///
    /// - Parameters:
    ///   - sinks: how many sinks there are, each with threads of its own that hold directories.
    ///   - workers: how many workers run in this process.
    static func transfers(of limit: Int, sinks: Int, workers: Int = 1) -> Int {
        let share = (limit - reserved) / workers
        return max(1, (share - walks * directories(of: limit) * sinks) / (2 + MachineConfiguration.jobsPerSlot))
    }

    /// Minimum number of descriptors for a process that runs workers and their coordinator. With fewer, libraries that
    /// need one terminate the process.
    public static func least(workers: Int) -> Int { reserved + leastShare * workers }

    /// The most descriptors that a worker with one slot needs, if its paths are not deep.
    private static let leastShare = 48

    /// How many directories a batch of placements or deletions may hold open. One more path can double that.
    static let directories = directories(of: current)

    private static func directories(of limit: Int) -> Int { max(8, min(256, limit / 32)) }
    /// Twice the threads of a sink that look for paths (`SinkStation`).
    private static let walks = 12

    private static func read() -> rlimit? {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? limit : nil
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
}
