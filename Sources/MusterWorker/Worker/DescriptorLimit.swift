import Glibc
import MusterSystem

/// How many files and connections this process may have open at once.
public enum DescriptorLimit {
    /// More than any part of Muster needs. Some systems allow a billion, and child processes may loop over every possible
    /// descriptor.
    private static let most: rlim_t = 65_536
    /// Descriptors that threads, loops, the log, the calls to coordinators and, in `get`, the coordinator itself need, and
    /// those that are left to system libraries.
    private static let reserved = 96 + OpenDescriptors.spare
    /// What a slot needs: a connection, perhaps an idle connection, its part of the connections beyond the slots (`MachineConfiguration.transfersBeyondSlots`), a
    /// part file, and the files of earlier transfers that are not durable yet.
    private static let perTransfer = 3 + MachineConfiguration.jobsPerSlot
    /// What a sink needs besides the directories of tasks' paths: its own directories, and what wakes its threads.
    private static let perSink = 8
    /// What the checks of a worker need besides the directories of a walk (`SinkChecker`): what wakes their thread, and a file or a list of names with
    /// the directory that it is in.
    private static let perChecker = 3
    /// With fewer directories, a batch could hold more than twice as many as it may (`SinkWalk`).
    private static let fewestDirectories = 2

    /// Raises the soft limit to the hard one, at most to `most`. A low soft limit is meant for programs that use
    /// select(2), which Muster doesn't.
    public static func raise() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        let wanted = min(limit.rlim_max, max(most, limit.rlim_cur))
        guard wanted > limit.rlim_cur else { return }
        limit.rlim_cur = wanted
        // If the process may not raise the limit, it keeps the current one.
        _ = setrlimit(resource, &limit)
    }

    /// The current limit of open descriptors.
    public static var current: Int { OpenDescriptors.limit ?? 1_024 }

    /// How many transfers may run at once.
    ///
    /// - Parameters:
    ///   - sinks: how many sinks there are, each with threads of its own that hold directories.
    ///   - workers: how many workers run in this process.
    static func transfers(of limit: Int, sinks: Int, workers: Int = 1) -> Int {
        let each = perSink + walks * directories(of: limit, sinks: sinks, workers: workers)
        let checker = perChecker + walk * directories(of: limit, sinks: sinks, workers: workers)
        return max(1, (share(of: limit, workers) - checker - each * sinks) / perTransfer)
    }

    /// Minimum number of descriptors for a process that runs workers and perhaps their coordinator: enough for one
    /// transfer of each worker. With fewer, transfers would wait for the last ones and fail, since
    /// `OpenDescriptors.spare` are for system libraries.
    ///
    /// - Parameters:
    ///   - workers: how many workers run in this process.
    ///   - sinks: how many sinks each worker has.
    public static func least(workers: Int, sinks: Int = 1) -> Int {
        let checker = perChecker + walk * fewestDirectories
        return reserved + workers * (sinks * (perSink + walks * fewestDirectories) + checker + perTransfer)
    }

    /// Refuses a worker for which this process has too few descriptors.
    static func check(_ limit: Int, sinks: Int, workers: Int = 1) throws(WorkerRefusal) {
        let needed = least(workers: workers, sinks: sinks)
        guard limit < needed else { return }
        throw .outOfResources(
            "this process may open \(limit) files, and needs \(needed)"
                + (sinks == 1 ? "" : " for \(sinks) sinks") + ": raise the limit (ulimit -n)")
    }

    /// What is left to each worker.
    private static func share(of limit: Int, _ workers: Int) -> Int { (limit - reserved) / max(1, workers) }

    /// How many directories a batch of placements or deletions may hold open, however deep its paths are. The last path
    /// of the batch can double that (`SinkWalk`).
    ///
    /// - Parameters:
    ///   - sinks: how many sinks each worker has.
    ///   - workers: how many workers run in this process.
    static func directories(of limit: Int, sinks: Int = 1, workers: Int = 1) -> Int {
        max(fewestDirectories, min(256, share(of: limit, workers) / (32 * max(1, sinks))))
    }

    /// How many times `directories` a walk may hold open.
    private static let walk = 2
    /// The same for all walks of a sink: it has six threads that look for paths (`SinkStation`).
    private static let walks = 6 * walk

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
}
