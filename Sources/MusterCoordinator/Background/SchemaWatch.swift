import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Stops the coordinator when its database has been migrated to another build (`adr/0016`).
final class SchemaWatch: Service {
    private let (refusals, door) = AsyncStream.makeStream(of: SchemaRefusal.self, bufferingPolicy: .bufferingOldest(1))

    /// Admits a connection to the pool, or rejects it and stops the coordinator.
    func enter(_ connection: PostgresConnection) async throws {
        do {
            try await SchemaFence.enter(connection)
        } catch let refusal as SchemaRefusal {
            door.yield(refusal)
            throw refusal
        }
    }

    /// Waits until a connection is rejected, or the coordinator stops.
    ///
    /// - Throws: the refusal.
    func run() async throws {
        let refusal = await cancelWhenGracefulShutdown { [refusals] in await refusals.first { _ in true } }
        if let refusal { throw refusal }
    }
}
