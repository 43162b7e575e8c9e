import MusterCore

/// The connections of sessions (I5, adr/0024).
extension StoreModel {
    /// The lanes of leases, and those of holdouts, whose sessions may still use them.
    private var lanes: [Lane] { leased + holdouts.values.map(\.lane).filter { $0.number > 0 } }

    /// The lanes of leases.
    var leased: [Lane] {
        groups.values.flatMap(\.tasks.values).flatMap(\.chunks).compactMap(\.lease?.lane).filter { $0.number > 0 }
    }

    /// All connections.
    var connections: Set<[Int64]> { Set(lanes.map(\.connection)) }

    /// The connections to an origin.
    func lanes(to origin: String) -> Set<[Int64]> { Set(lanes.filter { $0.origin == origin }.map(\.connection)) }

    /// The connections to an origin that have leases.
    func busyLanes(to origin: String) -> Set<[Int64]> { Set(leased.filter { $0.origin == origin }.map(\.connection)) }

    /// The number of other connections to an origin that bring bytes.
    func servedBeside(_ lane: Lane, at origin: String) -> Int {
        let serving = groups.values.flatMap(\.tasks.values).flatMap(\.chunks).filter {
            $0.origin == origin && $0.durable > $0.resume
        }
        return Set(serving.compactMap { $0.lease?.lane.connection }).subtracting([lane.connection]).count
    }

    /// The connections that a group's leases use.
    func lanes(of group: String) -> Set<[Int64]> { Set(lanes.filter { $0.group == group }.map(\.connection)) }

    /// The leases that queue behind others in their lanes.
    var queuedEpochs: Set<LeaseEpoch> {
        let leases = groups.values.flatMap(\.tasks.values).flatMap(\.chunks).compactMap(\.lease).filter {
            $0.lane.number > 0
        }
        let heads = Dictionary(leases.map { ($0.lane.connection, $0.epoch) }, uniquingKeysWith: min)
        return Set(leases.filter { heads[$0.lane.connection] != $0.epoch }.map(\.epoch))
    }
}
