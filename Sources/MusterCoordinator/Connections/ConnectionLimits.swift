import Glibc
import MusterCore
import NIOCore

/// How many connections a coordinator keeps, and how long a peer may keep it waiting (F23).
struct ConnectionLimits: Sendable {
    /// The least descriptors of a coordinator that others can reach: with fewer its own threads have none left in a flood of connections.
    static let leastDescriptors = 200

    /// The descriptors that the process may have.
    var descriptors: Int
    /// The most connections. Well below the descriptors of the process: without a free one, even the dispatch library ends it, since
    /// it can't look at its own threads any more.
    var count: Int
    /// How long the head of the first request may take.
    var firstHead: TimeAmount = .init(Limits.firstHead)
    /// How long a connection may stay without a further request; the whole head of that counts.
    var idle: TimeAmount = .init(Limits.connectionIdle)
    /// How long the least of a body may take (see `leastBody`), and how long a peer may leave an answer lying.
    var bodyWindow: TimeAmount = .init(Limits.bodyWindow)
    /// The bytes of a body that come within each window, unless it ends there or the coordinator is the slower one.
    var leastBody = Int(Limits.leastBodyPerWindow.bytes)
    /// How long a peer may go on sending what is not wanted any more.
    var farewell: TimeAmount = .init(Limits.connectionFarewell)

    /// The limits for a process that may have this many descriptors.
    init(descriptors: Int) {
        self.descriptors = descriptors
        count = min(Limits.connections, max(16, descriptors / 2))
    }

    /// The limits for this process as it is now.
    static var ofThisProcess: ConnectionLimits {
        var limit = rlimit()
        let result = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return ConnectionLimits(descriptors: result == 0 ? Int(clamping: limit.rlim_cur) : 0)
    }
}
