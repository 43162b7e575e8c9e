import MusterCore
import MusterSystem
import NIOCore

/// How many connections a coordinator keeps, and how long a peer may keep it waiting (F23).
struct ConnectionLimits: Sendable {
    /// The minimum number of descriptors of a coordinator that other processes can reach. With fewer, a flood of
    /// connections leaves none for the coordinator's own threads.
    static let leastDescriptors = 200

    /// The number of descriptors that the process may open.
    var descriptors: Int
    /// The maximum number of connections. It is well below the process's descriptors: without a free descriptor, the
    /// dispatch library ends the process, since it can't inspect its own threads any more.
    var count: Int
    /// How long the head of the first request may take.
    var firstHead: TimeAmount = .init(Limits.firstHead)
    /// How long a connection may be without a request: from the last answer until the whole head of the next request is here.
    var idle: TimeAmount = .init(Limits.connectionIdle)
    /// The time within which `leastBody` bytes of a body must arrive, and the time for which a peer may leave an answer unread.
    var bodyWindow: TimeAmount = .init(Limits.bodyWindow)
    /// The minimum bytes of a body within each window, unless the body ends there or the coordinator is the slower side.
    var leastBody = Int(Limits.leastBodyPerWindow.bytes)
    /// How long a peer may go on sending bytes that are not wanted any more.
    var farewell: TimeAmount = .init(Limits.connectionFarewell)

    /// The limits for a process that may have this many descriptors.
    init(descriptors: Int) {
        self.descriptors = descriptors
        count = min(Limits.connections, max(16, descriptors / 2))
    }

    /// The limits for this process as it is now.
    static var ofThisProcess: ConnectionLimits { ConnectionLimits(descriptors: OpenDescriptors.limit ?? 0) }
}
