import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Ends a coordinator whose database has become one of another build (`adr/0016`).
final class SchemaWatch: Service {
    private let (refusals, door) = AsyncStream.makeStream(of: SchemaRefusal.self, bufferingPolicy: .bufferingOldest(1))

    /// Lets a connection in, or refuses it and ends the coordinator.
    func enter(_ connection: PostgresConnection) async throws {
        do {
            try await SchemaFence.enter(connection)
        } catch let refusal as SchemaRefusal {
            door.yield(refusal)
            throw refusal
        }
    }

    /// Waits until a connection was refused, or the coordinator stops.
    ///
    /// - Throws: the refusal.
    func run() async throws {
        let refusal = await cancelWhenGracefulShutdown { [refusals] in await refusals.first { _ in true } }
        if let refusal { throw refusal }
    }
}
