import Glibc

/// How many files and connections this process may have open at once.
public enum DescriptorLimit {
    /// More than any part of Muster needs. Some systems allow a billion, and programs that are started from here may look at each
    /// possible one.
    private static let most: rlim_t = 65_536
    /// What threads, loops, the log, the calls to coordinators and, in `get`, the coordinator itself need.
    private static let reserved = 96

    /// Raises the soft limit to the hard one. The soft one is meant for programs that use select(2), which nothing here does.
    public static func raise() {
        guard var limit = read() else { return }
        let wanted = min(limit.rlim_max, max(most, limit.rlim_cur))
        guard wanted > limit.rlim_cur else { return }
        limit.rlim_cur = wanted
        // A process that may not goes on with what there is.
        _ = setrlimit(resource, &limit)
    }

    /// How many descriptors there may be.
    public static var current: Int { read().map { Int(clamping: $0.rlim_cur) } ?? 1_024 }

    /// How many transfers may run at once: each has a part file, a connection, and maybe one that idles, and files of transfers before it that
    /// are not durable yet. The process must not run out of descriptors: parts of the system's libraries end it then.
    ///
    /// - Parameters:
    ///   - sinks: how many sinks there are, each with threads of its own that hold directories.
    ///   - workers: how many workers run in this process.
    static func transfers(of limit: Int, sinks: Int, workers: Int = 1) -> Int {
        let share = (limit - reserved) / workers
        return max(1, (share - walks * directories(of: limit) * sinks) / (2 + MachineConfiguration.jobsPerSlot))
    }

    /// The least descriptors of a process that runs workers and their coordinator: with fewer, libraries that can't do without end it.
    public static func least(workers: Int) -> Int { reserved + leastShare * workers }

    /// What a worker with one slot needs at the most, where paths are not deep.
    private static let leastShare = 48

    /// How many directories one batch of files that are put in place or deleted may hold open. One more path can double that.
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
