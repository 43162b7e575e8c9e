import MusterAPI
import MusterCore
import MusterSystem

/// The settings of the machine, with every time span and bound that it keeps.
struct MachineConfiguration: Sendable {
    /// The worker's name.
    var name: String
    /// The version of the program.
    var version: String
    /// Labels of the operator's choosing.
    var labels: [String: String] = [:]
    /// The sinks, as they were found at the start.
    var sinks: [SinkStatus]
    /// How many transfers run at once.
    var slots: Int
    /// The rate that the worker keeps to by itself, in bytes per second; for display only.
    var bytesPerSecond: Int64?
    /// How long a coordinator may hold back the answer to a poll, at most.
    var longPoll: Duration = Limits.longPoll

    /// The wait between attempts to reach a coordinator: short, since trust runs out meanwhile.
    var reconnect = Backoff(first: .milliseconds(200), longest: .seconds(3), jitter: 1)
    /// How often the reason of a refusal is logged while it lasts.
    var refusalReminder: Duration = .seconds(60)
    /// The wait between probes of a parked sink: freed room is noticed within ten seconds. A probe never comes at once, and workers don't
    /// probe at the same time.
    var probing = Backoff(first: .seconds(4), longest: .seconds(10), jitter: 0.5)
    /// How long a plain progress report may wait for other reports (I16 bounds what this can cost).
    var progressDelay: Duration = .seconds(1)
    /// How often a worker that has shares of byte budgets syncs at least: what it uses decides about the next shares.
    var budgetInterval: Duration = .seconds(1)
    /// How long polls of such a worker may wait, so that the answer is there before the next sync is due.
    var budgetPoll: Duration = .milliseconds(900)
    /// How long a superseded poll may still take to be answered before it is given up.
    var supersededGrace: Duration = .seconds(2)
    /// A poll that was answered empty sooner than this is not repeated at once: the coordinator does not wait.
    var emptyPollBrake: Duration = .milliseconds(50)
    /// How long a page of a check that could not be looked at is left alone.
    var lookPause: Duration = .seconds(10)
    /// How long a lease may wait for a slot before it is given back.
    var queueTime: Duration = .seconds(2)
    /// How long transfers have taken slots before a worker begins more than it has slots, for groups that have no connection (I19).
    var sparePatience: Duration = .seconds(5)
    /// How many transfers a worker runs beyond its slots at most.
    var transfersBeyondSlots: Int { max(1, slots / 2) }
    /// For how many transfers that wait for an answer it runs as many more. Unless they resume a file, they hold none open, so that what `jobsPerSlot` allows
    /// suffices for their connections.
    var silentTransfers: Int { 2 * slots }
    /// A sink that goes bad again within this span goes on with the backoff that it had.
    var sinkRelapse: Duration = .seconds(60)
    /// How often a healthy sink is checked of which this worker has no leases.
    var sinkWatch: Duration = .seconds(60)
    /// How long a call to a sink may hang before the session is given up, so that other sessions get its leases. The time doubles each time, so that a very
    /// slow sink makes progress in the end.
    var hangPatience = Backoff(first: .seconds(30), longest: .seconds(240), jitter: 0)
    /// How long a drain lets finalizations run.
    var drainPatience: Duration = .seconds(5)
    /// When a drain aborts the jobs that still run.
    var drainAbort: Duration = .milliseconds(8_500)
    /// When a drain ends, even if it is not complete.
    var drainEnd: Duration = .milliseconds(9_500)
    /// The most leases per slot whose transfer runs, or whose bytes have come and are not durable yet: each holds a file open.
    static let jobsPerSlot = 4
    /// The most leases of a lane, when transfers are short.
    var leasesPerLane = 32
}

extension Duration {
    /// Whole nanoseconds; the machine's spans are short, so nothing overflows.
    var wholeNanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}

/// A small generator whose every number follows from its seed, so that a history can be replayed (SplitMix64).
struct JitterGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// A generator that begins at `seed`.
    init(seed: UInt64) {
        state = seed
    }

    /// The next 64 bits.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
