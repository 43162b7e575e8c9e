import NIOCore
import Synchronization

/// All connections of a coordinator. When the limit is reached, a new connection takes the place of those whose peers have
/// kept the coordinator waiting longest, so that thousands of silent connections keep no worker out (I19).
final class ConnectionTable: Sendable {
    private struct Entry: Sendable {
        let channel: any Channel
        /// Since when the peer has owed something; `nil` while it owes nothing.
        var waitingSince: NIODeadline?
        /// Whether no request is under way.
        var isIdle: Bool
    }

    private let limit: Int
    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])
    /// The share of the connections that is closed at once (1/32), so that the table is not sorted for each new connection.
    private static let share = 32
    /// How long a connection without a request ranks like a connection with a request: its head may be on its way.
    private static let arrival: TimeAmount = .seconds(1)

    /// A table of that many connections.
    init(limit: Int) {
        self.limit = limit
    }

    /// Adds a connection, and closes others if necessary. Returns false when there is no room for it.
    func enter(_ channel: any Channel, now: NIODeadline) -> Bool {
        let (isIn, evicted) = entries.withLock { entries -> (Bool, [any Channel]) in
            var evicted: [any Channel] = []
            if entries.count >= limit {
                let owing = entries.compactMap { id, entry in
                    entry.waitingSince.map { (id, $0, entry.isIdle && $0 + Self.arrival <= now) }
                }
                // Connections that stay without a request first, then by the longest wait.
                .sorted { $0.2 != $1.2 ? $0.2 : $0.1 < $1.1 }
                for (id, _, _) in owing.prefix(max(1, limit / Self.share)) {
                    if let entry = entries.removeValue(forKey: id) { evicted.append(entry.channel) }
                }
            }
            guard entries.count < limit else { return (false, evicted) }
            entries[ObjectIdentifier(channel)] = Entry(channel: channel, waitingSince: now, isIdle: true)
            return (true, evicted)
        }
        for channel in evicted { channel.close(promise: nil) }
        return isIn
    }

    /// Notes what a connection's peer owes. A connection that was evicted is not added again.
    func note(_ channel: any Channel, waitingSince: NIODeadline?, isIdle: Bool) {
        entries.withLock { entries in
            entries[ObjectIdentifier(channel)]?.waitingSince = waitingSince
            entries[ObjectIdentifier(channel)]?.isIdle = isIdle
        }
    }

    /// Removes a closed connection.
    func leave(_ channel: any Channel) {
        entries.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(channel)) }
    }

    /// How many connections there are.
    var count: Int { entries.withLock { $0.count } }
}
