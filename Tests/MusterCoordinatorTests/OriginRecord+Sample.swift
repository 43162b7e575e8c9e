@testable import MusterStore

extension OriginRecord {
    /// An origin with room for eight connections.
    static func sample(_ name: String, connections: Int64 = 0, bytesPerSecond: Int64 = 0) -> OriginRecord {
        OriginRecord(
            key: "https://\(name).example:443", allowedConnections: 8, connections: connections,
            inHand: LeasedBytes(leases: 0, fetching: 0, done: 0, total: 0, unknown: 0, slowestSeconds: nil),
            isTried: false, bytesPerSecond: bytesPerSecond)
    }
}
